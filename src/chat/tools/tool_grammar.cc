#include "src/chat/tools/tool_grammar.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/grammar/grammar.h"
#include "src/grammar/schema/schema_keywords.h"

namespace latte {
namespace {

// A model that loses its way calls for ever.
constexpr int kMostCalls = 32;

using Elements = std::vector<JsonOut>;

JsonOut ConstString(std::string_view text) {
  return {{"type", "const_string"}, {"value", std::string(text)}};
}

JsonOut Rules(std::string rules) { return {{"type", "grammar"}, {"grammar", std::move(rules)}}; }

bool IsToken(const JsonOut& part) { return part["type"] == "token"; }

// Splits texts of one format. Made once for many texts, because tokenizers have hundreds of added
// tokens.
class FormatSplitter {
 public:
  explicit FormatSplitter(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), added_(tokenizer.AddedIds()) {
    std::ranges::sort(added_);
  }

  // The tokens and texts that `text` consists of.
  Elements Split(std::string_view text) const;
  // As the functions of the header.
  JsonOut Text(std::string_view text) const { return Sequence(Split(text)); }
  JsonOut Until(std::string_view mark) const;

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> added_;
};

Elements FormatSplitter::Split(std::string_view text) const {
  const TextPiece piece{std::string(text), /*from_template=*/true};
  Elements out;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) out.push_back(ConstString(std::exchange(plain, {})));
  };
  // Marks are short: they are within every limit of the tokenizer.
  const auto ids = tokenizer_.EncodePieces({&piece, 1});
  for (const int32_t id : ids ? *ids : std::vector<int32_t>()) {
    if (!std::ranges::binary_search(added_, id)) {
      plain += tokenizer_.TokenBytes(id);
      continue;
    }
    flush();
    out.push_back({{"type", "token"}, {"token", id}});
  }
  flush();
  return out;
}

JsonOut FormatSplitter::Until(std::string_view mark) const {
  Elements parts = Split(mark);
  if (std::ranges::none_of(parts, IsToken))
    return {{"type", "tag"},
            {"begin", ""},
            {"content", {{"type", "any_text"}}},
            {"end", std::string(mark)}};
  parts.insert(parts.begin(), JsonOut{{"type", "any_text"}});
  return Sequence(std::move(parts));
}

// Writes the calls of one format.
class CallsWriter {
 public:
  CallsWriter(ToolFormat format, const Tokenizer& tokenizer)
      : format_(format), splitter_(tokenizer) {}

  Result<JsonOut> Calls(std::span<const ToolFunction> functions, bool parallel) const;

 private:
  JsonOut Text(std::string_view text) const { return splitter_.Text(text); }
  Result<JsonOut> Call(const ToolFunction& function) const;
  JsonOut JsonCall(const ToolFunction& function, JsonOut arguments) const;
  Result<JsonOut> Parameters(const JsonOut& schema, bool strict) const;
  Result<JsonOut> Parameter(const std::string& name, const JsonOut& schema, const JsonOut& root,
                            bool strict) const;
  Result<JsonOut> Value(const std::string& name, const JsonOut& schema, const JsonOut& root) const;
  bool has_parameters() const { return !SyntaxOf(format_).parameter_begin.empty(); }

  ToolFormat format_;
  FormatSplitter splitter_;
};

// A JSON pointer to a property.
std::string PointerTo(std::string_view property) {
  std::string out = "/properties/";
  for (const char c : property) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

// A schema of an object; of no schema, that of any object.
Result<JsonOut> ObjectSchema(const ToolFunction& function) {
  if (function.parameters.empty()) return JsonOut{{"type", "object"}};
  LATTE_ASSIGN_OR_RETURN(JsonOut schema, ParseToEdit(function.parameters, "parameters"));
  if (schema.is_object() && !schema.contains("type") && !schema.contains("$ref"))
    schema["type"] = "object";
  return schema;
}

JsonOut CallsWriter::JsonCall(const ToolFunction& function, JsonOut arguments) const {
  const std::string& name = function.name;
  switch (format_) {
    case ToolFormat::kDeepseekV3:
      return Sequence({Text("<｜tool▁call▁begin｜>function<｜tool▁sep｜>"),
                       ConstString(name + "\n```json\n"), std::move(arguments),
                       Text("\n```<｜tool▁call▁end｜>")});
    case ToolFormat::kKimiK2:
      return Sequence({Text("<|tool_call_begin|>"),
                       ConstString("functions." + name + ":"),
                       {{"type", "regex"}, {"pattern", "[0-9]{1,3}"}},
                       Text("<|tool_call_argument_begin|>"),
                       std::move(arguments),
                       Text("<|tool_call_end|>")});
    default:
      return Sequence({Text("<｜tool▁call▁begin｜>"), ConstString(name), Text("<｜tool▁sep｜>"),
                       std::move(arguments), Text("<｜tool▁call▁end｜>")});
  }
}

bool IsText(const JsonOut& schema) {
  return schema.is_object() && schema.value("type", JsonOut()) == "string";
}

// Refuses the constraints of `schema` that are not in `enforced`.
Status CheckKeys(const JsonOut& schema, std::initializer_list<std::string_view> enforced,
                 std::string_view what) {
  for (const auto& [key, value] : schema.items())
    if (std::ranges::find(enforced, key) == enforced.end() && IsConstraint(key) && !value.is_null())
      return Unsupported(fmt::format(
          "parameters: '{}' of {} cannot be enforced in calls of this model; leave it out", key,
          what));
  return {};
}

// A value of type string is written without quotes, up to the mark at its end.
Status CheckText(const std::string& name, const JsonOut& schema) {
  return CheckKeys(schema, {"type", "enum", "const"}, fmt::format("the text '{}'", name));
}

// A call lists parameters by name: nothing else of an object's schema is enforced.
Status CheckObject(const JsonOut& schema) {
  if (!schema.is_object() || schema.value("type", JsonOut("object")) != "object")
    return Unsupported("parameters: expected a schema of type object");
  LATTE_RETURN_IF_ERROR(
      CheckKeys(schema, {"type", "properties", "required", "additionalProperties"}, "the object"));
  const JsonOut properties = schema.value("properties", JsonOut::object());
  for (const JsonOut& name : schema.value("required", JsonOut::array()))
    if (name.is_string() && !properties.contains(name.get<std::string>()))
      return Unsupported(fmt::format("parameters: '{}' is required but has no schema in properties",
                                     name.get<std::string>()));
  return {};
}

// The value and the mark at its end.
Result<JsonOut> CallsWriter::Value(const std::string& name, const JsonOut& schema,
                                   const JsonOut& root) const {
  const std::string_view end = SyntaxOf(format_).value_end;
  if (!IsText(schema)) {
    LATTE_ASSIGN_OR_RETURN(std::string rules, RulesOfSchema(Dump(root), PointerTo(name)));
    return Sequence({Rules(std::move(rules)), Text(end)});
  }
  LATTE_RETURN_IF_ERROR(CheckText(name, schema));
  const bool is_fixed = schema.contains("const");
  Elements texts;
  for (const JsonOut& text :
       schema.value("enum", is_fixed ? JsonOut::array({schema["const"]}) : JsonOut::array()))
    if (text.is_string() && (!is_fixed || text == schema["const"]))
      texts.push_back(ConstString(text.get<std::string>()));
  if (!texts.empty()) return Sequence({Choice(std::move(texts)), Text(end)});
  if (schema.contains("enum") || is_fixed)
    return InvalidArgument("parameters: expected texts in the enum of " + name);
  return splitter_.Until(end);
}

Result<JsonOut> CallsWriter::Parameter(const std::string& name, const JsonOut& schema,
                                       const JsonOut& root, bool strict) const {
  const bool is_glm = format_ == ToolFormat::kGlm;
  Elements out;
  if (is_glm) {
    out = {Text("<arg_key>"), ConstString(name), Text("</arg_key>"), Optional(ConstString("\n")),
           Text("<arg_value>")};
  } else {
    out = {Text("<｜DSML｜parameter name=\""),
           ConstString(name + "\" string=\"" + (IsText(schema) ? "true" : "false") + "\">")};
  }
  Result<JsonOut> value = Value(name, schema, root);
  if (!value && strict) return value;
  out.push_back(value ? *std::move(value) : splitter_.Until(SyntaxOf(format_).value_end));
  out.push_back(is_glm ? Optional(ConstString("\n")) : ConstString("\n"));
  return Sequence(std::move(out));
}

Result<JsonOut> CallsWriter::Parameters(const JsonOut& schema, bool strict) const {
  if (strict) {
    const Result<std::string> whole =
        RulesOfSchema(Dump(schema), "");  // it may hold what is ignored below
    if (!whole) return tl::unexpected(whole.error());
    LATTE_RETURN_IF_ERROR(CheckObject(schema));
  }
  Elements out;
  std::set<std::string> required;
  if (schema.is_object() && schema.contains("required") && schema["required"].is_array())
    for (const JsonOut& name : schema["required"])
      if (name.is_string()) required.insert(name.get<std::string>());
  if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object())
    for (const auto& [name, property] : schema["properties"].items()) {
      LATTE_ASSIGN_OR_RETURN(JsonOut parameter, Parameter(name, property, schema, strict));
      out.push_back(required.contains(name) ? std::move(parameter)
                                            : Optional(std::move(parameter)));
    }
  return Sequence(std::move(out));
}

Result<JsonOut> CallsWriter::Call(const ToolFunction& function) const {
  LATTE_ASSIGN_OR_RETURN(const JsonOut schema, ObjectSchema(function));
  if (!has_parameters()) {
    Result<std::string> rules = RulesOfSchema(Dump(schema), "");
    if (!rules && !function.strict) rules = RulesOfSchema(R"({"type": "object"})", "");
    if (!rules) return tl::unexpected(rules.error());
    return JsonCall(function, Rules(*std::move(rules)));
  }
  LATTE_ASSIGN_OR_RETURN(JsonOut parameters, Parameters(schema, function.strict));
  if (format_ == ToolFormat::kGlm)
    return Sequence({Text("<tool_call>"), ConstString(function.name), Optional(ConstString("\n")),
                     std::move(parameters), Text("</tool_call>")});
  return Sequence({Text("<｜DSML｜invoke name=\""), ConstString(function.name + "\">\n"),
                   std::move(parameters), Text("</｜DSML｜invoke>\n")});
}

Result<JsonOut> CallsWriter::Calls(std::span<const ToolFunction> functions, bool parallel) const {
  Elements calls;
  for (const ToolFunction& function : functions) {
    LATTE_ASSIGN_OR_RETURN(calls.emplace_back(), Call(function));
  }
  const JsonOut call = Choice(std::move(calls));
  Elements out;
  if (format_ == ToolFormat::kGlm)
    out.push_back(Optional(ConstString("\n")));
  else if (format_ == ToolFormat::kDeepseekV32)
    out.push_back(Text("\n\n<｜DSML｜function_calls>\n"));
  else
    out.push_back(Text(SyntaxOf(format_).block_begins.front()));
  out.push_back(call);
  if (parallel) {
    Elements another;
    if (format_ == ToolFormat::kDeepseekV3) another.push_back(ConstString("\n"));
    if (format_ == ToolFormat::kGlm) another.push_back(Optional(ConstString("\n")));
    another.push_back(call);
    out.push_back({{"type", "repeat"},
                   {"min", 0},
                   {"max", kMostCalls - 1},
                   {"content", Sequence(std::move(another))}});
  }
  const auto ends = SyntaxOf(format_).block_ends;
  if (!ends.empty()) out.push_back(Text(ends.front()));
  return Sequence(std::move(out));
}

}  // namespace

JsonOut Sequence(std::vector<JsonOut> elements) {
  if (elements.empty()) return ConstString("");
  if (elements.size() == 1) return std::move(elements.front());
  return {{"type", "sequence"}, {"elements", std::move(elements)}};
}

JsonOut Choice(std::vector<JsonOut> elements) {
  if (elements.size() == 1) return std::move(elements.front());
  return {{"type", "or"}, {"elements", std::move(elements)}};
}

JsonOut Optional(JsonOut content) {
  return {{"type", "optional"}, {"content", std::move(content)}};
}

JsonOut FormatText(std::string_view text, const Tokenizer& tokenizer) {
  return FormatSplitter(tokenizer).Text(text);
}

JsonOut TextUntil(std::string_view mark, const Tokenizer& tokenizer) {
  return FormatSplitter(tokenizer).Until(mark);
}

Result<JsonOut> CallsFormat(ToolFormat format, std::span<const ToolFunction> functions,
                            bool parallel, const Tokenizer& tokenizer) {
  return CallsWriter(format, tokenizer).Calls(functions, parallel);
}

JsonOut TextWithoutCalls(ToolFormat format, const Tokenizer& tokenizer) {
  const FormatSplitter splitter(tokenizer);
  JsonOut out = {{"type", "any_text"}};
  const auto has_token = [&](std::string_view mark) {
    return std::ranges::any_of(splitter.Split(mark), IsToken);
  };
  // Any text has no such tokens; with a list of exclusions it would have them.
  const auto marks = CallOpenings(format);
  if (std::ranges::any_of(marks, has_token)) return out;
  for (const std::string_view mark : marks) out["excludes"].push_back(std::string(mark));
  return out;
}

}  // namespace latte
