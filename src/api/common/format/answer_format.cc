#include "src/api/common/format/answer_format.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/chat/tools/tool_grammar.h"

namespace latte {
namespace {

constexpr size_t kMostChoices = 1024;
constexpr std::string_view kAnyObject = R"({"type": "object"})";

Status SetFormat(const Json& value, Grammar grammar, AnswerFormat* out) {
  if (out->content)
    return InvalidArgument(fmt::format("{}: the answer already has a format by {}; give only one",
                                       value.path(), out->path));
  out->content = std::move(grammar);
  out->path = value.path();
  return {};
}

std::string StructuralTag(JsonOut format) {
  return Dump(JsonOut{{"type", "structural_tag"}, {"format", std::move(format)}});
}

Status CheckKeys(const Json& value, std::initializer_list<std::string_view> known) {
  return value.ForEachMember([&](const std::string& key, const Json& member) -> Status {
    const bool is_null = !value.Find(key);
    if (is_null || std::ranges::find(known, key) != known.end()) return {};
    return InvalidArgument(
        fmt::format("{}: expected no such field here; leave it out", member.path()));
  });
}

// A schema, or its text.
Result<Grammar> SchemaOf(const Json& value) {
  if (value.is_string()) {
    LATTE_ASSIGN_OR_RETURN(std::string text, value.AsString());
    return Grammar{GrammarSyntax::kJsonSchema, std::move(text)};
  }
  if (!value.is_object() && !value.is_bool())
    return InvalidArgument(value.path() + ": expected a JSON schema, which is an object");
  return Grammar{GrammarSyntax::kJsonSchema, value.Text()};
}

Result<Grammar> ChoiceOf(const Json& value) {
  if (!value.is_array() || value.size() == 0 || value.size() > kMostChoices)
    return InvalidArgument(
        fmt::format("{}: expected an array of 1 to {} strings", value.path(), kMostChoices));
  std::vector<JsonOut> texts;
  for (size_t i = 0; i < value.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(std::string text, value.At(i).AsString());
    if (text.empty()) return InvalidArgument(value.At(i).path() + ": expected a text, found \"\"");
    texts.push_back({{"type", "const_string"}, {"value", std::move(text)}});
  }
  return Grammar{GrammarSyntax::kStructuralTag, StructuralTag(Choice(std::move(texts)))};
}

Result<Grammar> GuideOf(std::string_view kind, const Json& value) {
  if (kind == "json") return SchemaOf(value);
  if (kind == "choice") return ChoiceOf(value);
  LATTE_ASSIGN_OR_RETURN(std::string text, value.AsString());
  if (kind == "regex") return Grammar{GrammarSyntax::kRegex, std::move(text)};
  // vLLM takes both notations in one field.
  const bool is_ebnf = text.find("::=") != std::string::npos;
  return Grammar{is_ebnf ? GrammarSyntax::kEbnf : GrammarSyntax::kLark, std::move(text)};
}

// Errors: that of `made`, which speaks of a grammar, with the field that it comes from.
tl::unexpected<Error> At(std::string_view path, Error error) {
  constexpr std::string_view kPrefix = "grammar: ";
  std::string_view message = error.message;
  if (message.starts_with(kPrefix)) message.remove_prefix(kPrefix.size());
  return Fail(error.code, fmt::format("{}: {}", path, message));
}

// The content's grammar as a part of a structural tag.
Result<JsonOut> ContentFormat(const AnswerFormat& format) {
  auto rules = RulesOf(*format.content);
  if (!rules) return At(format.path, std::move(rules).error());
  return JsonOut{{"type", "grammar"}, {"grammar", *std::move(rules)}};
}

// Calls, content, or both, without reasoning.
Result<JsonOut> BodyFormat(const AnswerFormat& format, const ApiTools& tools,
                           const ChatPromptBuilder* chat) {
  if (!tools.active()) return ContentFormat(format);
  const std::vector<ToolFunction> functions = tools.Choosable();
  auto calls = CallsFormat(*chat->tool_format(), functions, tools.parallel, chat->tokenizer());
  if (!calls) return At(tools.path, std::move(calls).error());
  if (tools.forced()) return calls;
  if (format.content) {
    LATTE_ASSIGN_OR_RETURN(JsonOut content, ContentFormat(format));
    return Choice({std::move(content), *std::move(calls)});
  }
  return Sequence(
      {TextWithoutCalls(*chat->tool_format(), chat->tokenizer()), Optional(*std::move(calls))});
}

// The model may reason although the prompt does not begin it, and the client has no say in it.
bool MayReason(const ChatPromptBuilder& chat) {
  return !chat.has_thinking_switch() && chat.tokenizer().TokenId("<think>") &&
         chat.tokenizer().TokenId("</think>");
}

JsonOut WithReasoning(JsonOut body, const ChatPromptBuilder& chat, bool in_thought) {
  const Tokenizer& tokenizer = chat.tokenizer();
  JsonOut rest = TextUntil("</think>", tokenizer);
  const JsonOut space = Optional({{"type", "const_string"}, {"value", "\n\n"}});
  if (in_thought) return Sequence({std::move(rest), space, std::move(body)});
  if (!MayReason(chat)) return body;
  return Sequence({Optional(Sequence({FormatText("<think>", tokenizer), std::move(rest), space})),
                   std::move(body)});
}

}  // namespace

Status ReadGuide(std::string_view kind, const Json& value, AnswerFormat* out) {
  if (kind == "json_object") {
    LATTE_ASSIGN_OR_RETURN(const bool wanted, value.AsBool());
    return wanted ? SetFormat(value, {GrammarSyntax::kJsonSchema, std::string(kAnyObject)}, out)
                  : Status();
  }
  LATTE_ASSIGN_OR_RETURN(Grammar grammar, GuideOf(kind, value));
  return SetFormat(value, std::move(grammar), out);
}

Status ReadResponseFormat(const Json& value, AnswerFormat* out) {
  if (!value.is_object()) return InvalidArgument(value.path() + ": expected an object with a type");
  LATTE_ASSIGN_OR_RETURN(const std::string type, value.GetString("type"));
  if (type == "text" || type == "json_object") LATTE_RETURN_IF_ERROR(CheckKeys(value, {"type"}));
  if (type == "text") return {};
  if (type == "json_object")
    return SetFormat(value, {GrammarSyntax::kJsonSchema, std::string(kAnyObject)}, out);
  if (type != "json_schema")
    return Unsupported(fmt::format("{}: expected type text, json_object or json_schema, found '{}'",
                                   value.path(), type));
  LATTE_RETURN_IF_ERROR(CheckKeys(value, {"type", "json_schema"}));
  LATTE_ASSIGN_OR_RETURN(const Json named, value.Get("json_schema"));
  LATTE_RETURN_IF_ERROR(CheckKeys(named, {"name", "description", "schema", "strict"}));
  LATTE_ASSIGN_OR_RETURN(const Json schema, named.Get("schema"));
  LATTE_ASSIGN_OR_RETURN(Grammar grammar, SchemaOf(schema));
  return SetFormat(schema, std::move(grammar), out);
}

Status ReadStructuredOutputs(const Json& value, AnswerFormat* out) {
  if (!value.is_object()) return InvalidArgument(value.path() + ": expected an object");
  return value.ForEachMember([&](const std::string& key, const Json& member) -> Status {
    if (!value.Find(key)) return {};  // null
    for (const std::string_view kind : {"json", "regex", "choice", "grammar", "json_object"})
      if (key == kind) return ReadGuide(kind, member, out);
    return Unsupported(fmt::format(
        "{}: expected json, regex, choice, grammar or json_object, found '{}'", value.path(), key));
  });
}

Status SetGrammar(const AnswerFormat& format, const ApiTools& tools, const ChatPromptBuilder* chat,
                  bool in_thought, Request* request) {
  if (!format.content && !tools.constrained()) return {};
  Grammar grammar;
  if (chat == nullptr || (!tools.active() && !in_thought && !MayReason(*chat))) {
    grammar = *format.content;
  } else {
    LATTE_ASSIGN_OR_RETURN(JsonOut body, BodyFormat(format, tools, chat));
    grammar = {GrammarSyntax::kStructuralTag,
               StructuralTag(WithReasoning(std::move(body), *chat, in_thought))};
  }
  const std::string& path = format.content && !tools.forced() ? format.path : tools.path;
  if (auto status = CheckGrammar(grammar); !status) return At(path, std::move(status).error());
  request->grammar = std::move(grammar.text);
  request->grammar_syntax = Name(grammar.syntax);
  return {};
}

}  // namespace latte
