#include "src/grammar/grammar_rules.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "src/base/json.h"

namespace latte {
namespace {

// A structural tag may hold the schemas of many functions.
constexpr size_t kMostBytes = 256 << 10;
constexpr size_t kMostTagBytes = 4 << 20;
constexpr int kMostDepth = 200;

// The deepest nesting of brackets. Brackets in strings and classes count too: a bound needs no more.
int Depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
  }
  return deepest;
}

// Members that say nothing about the value.
constexpr std::array<std::string_view, 17> kAnnotations = {
    "$comment",   "$defs",       "$id",     "$schema",  "default", "definitions",
    "deprecated", "description", "example", "examples", "title",   "discriminator",
    "readOnly",   "writeOnly",   "type",    "$anchor",  "nullable"};
// A schema with one of these is read as if it had nothing else.
constexpr std::array<std::string_view, 6> kAlone = {"$ref",  "const", "enum",
                                                    "anyOf", "oneOf", "allOf"};

// Constraints that xgrammar does not know.
constexpr std::array<std::string_view, 9> kUnknown = {
    "not",      "if",          "then",       "else", "dependentRequired", "dependentSchemas",
    "contains", "minContains", "maxContains"};

bool IsIn(std::string_view key, std::span<const std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}

Status CheckSchema(const Json& schema);

Status CheckAll(const Json& list) {
  if (!list.is_array()) return {};
  for (size_t i = 0; i < list.size(); ++i) LATTE_RETURN_IF_ERROR(CheckSchema(list.At(i)));
  return {};
}

Status CheckMembers(const Json& schemas) {
  return schemas.ForEachMember(
      [](const std::string&, const Json& schema) { return CheckSchema(schema); });
}

Status CheckSchema(const Json& schema) {
  if (!schema.is_object()) return {};
  for (const std::string_view key : kUnknown)
    if (schema.Find(key))
      return Unsupported(
          fmt::format("{}: '{}' cannot be enforced; leave it out", schema.path(), key));
  LATTE_ASSIGN_OR_RETURN(const bool unique, schema.GetBoolOr("uniqueItems", false));
  if (unique)
    return Unsupported(schema.path() + ": 'uniqueItems' cannot be enforced; leave it out");
  for (const std::string_view alone : kAlone) {
    if (!schema.Find(alone)) continue;
    LATTE_RETURN_IF_ERROR(schema.ForEachMember([&](const std::string& key, const Json&) -> Status {
      if (key == alone || IsAnnotation(key)) return {};
      return Unsupported(
          fmt::format("{}: '{}' next to '{}' cannot be enforced; move it into the "
                      "schemas of '{}'",
                      schema.path(), key, alone, alone));
    }));
    break;
  }
  for (const std::string_view key : {"anyOf", "oneOf", "allOf", "prefixItems"})
    if (const auto list = schema.Find(key)) LATTE_RETURN_IF_ERROR(CheckAll(*list));
  for (const std::string_view key : {"items", "additionalProperties"})
    if (const auto one = schema.Find(key)) LATTE_RETURN_IF_ERROR(CheckSchema(*one));
  for (const std::string_view key : {"properties", "patternProperties", "$defs", "definitions"})
    if (const auto members = schema.Find(key)) LATTE_RETURN_IF_ERROR(CheckMembers(*members));
  return {};
}

}  // namespace

bool IsAnnotation(std::string_view keyword) { return IsIn(keyword, kAnnotations); }

Status CheckGrammarSize(const Grammar& grammar) {
  const bool is_tag = grammar.syntax == GrammarSyntax::kStructuralTag;
  const size_t most = is_tag ? kMostTagBytes : kMostBytes;
  if (grammar.text.size() > most)
    return InvalidArgument(fmt::format("grammar: expected at most {} bytes of {}, found {}", most,
                                       Name(grammar.syntax), grammar.text.size()));
  if (const int depth = Depth(grammar.text); depth > kMostDepth)
    return InvalidArgument(fmt::format(
        "grammar: expected brackets that nest at most {} deep, found {}", kMostDepth, depth));
  if (grammar.text.find('\0') != std::string::npos)
    return InvalidArgument("grammar: expected text, found a byte 0");
  return {};
}

Status CheckSchemaKeywords(const std::string& schema) {
  constexpr JsonLimits kLimits = {.max_depth = 128, .max_elements = 100'000};
  Result<Json> json = Json::Parse(schema, "grammar", kLimits);
  if (!json) return InvalidArgument(json.error().message);
  if (!json->is_object() && !json->is_bool())
    return InvalidArgument("grammar: expected a JSON schema, which is an object");
  Status status = CheckSchema(*json);
  if (!status && status.error().code == Code::kCorrupt)  // of a value's type
    return InvalidArgument(status.error().message);
  return status;
}

}  // namespace latte
