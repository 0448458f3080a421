#include "src/chat/tools/value_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "src/base/strings.h"

namespace latte {
namespace {

// References may multiply: every schema of a request is read with a bounded effort.
constexpr int kDeepest = 16;
constexpr int kMostSchemas = 4096;

constexpr uint8_t kNumber = kJsonInteger | kJsonFraction;

uint8_t TypesNamed(std::string_view name) {
  struct Named {
    std::string_view name;
    uint8_t types;
  };
  constexpr auto kNames = std::to_array<Named>({{"null", kJsonNull},
                                                {"boolean", kJsonBoolean},
                                                {"integer", kJsonInteger},
                                                {"number", kNumber},
                                                {"string", kJsonString},
                                                {"array", kJsonArray},
                                                {"object", kJsonObject}});
  for (const Named& known : kNames)
    if (known.name == name) return known.types;
  return kAnyJsonType;
}

// A schema without a type whose keywords speak of one type means that type.
uint8_t TypesOfKeyword(std::string_view keyword) {
  struct Keyword {
    std::string_view name;
    uint8_t types;
  };
  constexpr auto kKeywords = std::to_array<Keyword>({{"properties", kJsonObject},
                                                     {"additionalProperties", kJsonObject},
                                                     {"patternProperties", kJsonObject},
                                                     {"required", kJsonObject},
                                                     {"items", kJsonArray},
                                                     {"prefixItems", kJsonArray},
                                                     {"minItems", kJsonArray},
                                                     {"maxItems", kJsonArray},
                                                     {"pattern", kJsonString},
                                                     {"minLength", kJsonString},
                                                     {"maxLength", kJsonString},
                                                     {"minimum", kNumber},
                                                     {"maximum", kNumber},
                                                     {"multipleOf", kNumber}});
  for (const Keyword& known : kKeywords)
    if (known.name == keyword) return known.types;
  return 0;
}

bool IsNull(const Json& value) {
  return value.size() == 0 && !value.is_array() && !value.is_object();
}

std::string Unescaped(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    const bool escaped = token[i] == '~' && i + 1 < token.size();
    if (!escaped) {
      out += token[i];
    } else {
      out += token[++i] == '0' ? '~' : '/';
    }
  }
  return out;
}

// "#/$defs/Day" in `root`.
std::optional<Json> Resolve(std::string_view reference, const Json& root) {
  if (!reference.starts_with('#')) return std::nullopt;
  reference.remove_prefix(1);
  Json at = root;
  while (!reference.empty()) {
    if (reference.front() != '/') return std::nullopt;
    const size_t end = std::min(reference.find('/', 1), reference.size());
    const std::string key = Unescaped(reference.substr(1, end - 1));
    reference.remove_prefix(end);
    if (at.is_array()) {
      const bool is_index = key.size() < 7 && IsDigits(key);
      const size_t index = is_index ? static_cast<size_t>(std::stoul(key)) : at.size();
      if (index >= at.size()) return std::nullopt;
      at = at.At(index);
      continue;
    }
    const std::optional<Json> member = at.Find(key);
    if (!member) return std::nullopt;
    at = *member;
  }
  return at;
}

std::optional<Json> Referred(const Json& schema, const Json& root) {
  const auto reference = schema.Find("$ref");
  if (!reference || !reference->is_string()) return std::nullopt;
  return Resolve(*reference->AsString(), root);
}

ValueSchema Either(const ValueSchema& a, const ValueSchema& b) {
  ValueSchema out{.types = static_cast<uint8_t>(a.types | b.types)};
  if (a.values.empty() || b.values.empty()) return out;
  out.values = a.values;
  out.values.insert(b.values.begin(), b.values.end());
  return out;
}

ValueSchema Both(const ValueSchema& a, const ValueSchema& b) {
  ValueSchema out{.types = static_cast<uint8_t>(a.types & b.types),
                  .values = a.values.empty() ? b.values : a.values,
                  .plain_text = a.plain_text || b.plain_text};
  if (out.types == 0) out.types = b.types;  // nothing is in both: the schema is wrong
  return out;
}

class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : root_(root) {}

  ValueSchema Values(const Json& schema, int depth);
  void AddParameters(const Json& schema, int depth, FunctionParameters* out);

 private:
  bool TooMuch(const Json& schema, int depth) {
    return !schema.is_object() || depth > kDeepest || ++read_ > kMostSchemas;
  }
  ValueSchema AnyOf(const Json& branches, int depth);

  const Json& root_;
  int read_ = 0;
};

ValueSchema OfType(const Json& type) {
  ValueSchema out{.types = 0};
  if (type.is_string()) {
    out.types = TypesNamed(*type.AsString());
    out.plain_text = out.types == kJsonString;
  }
  for (size_t i = 0; type.is_array() && i < type.size(); ++i)
    if (type.At(i).is_string()) out.types |= TypesNamed(*type.At(i).AsString());
  if (out.types == 0) out.types = kAnyJsonType;
  return out;
}

void AddValue(const Json& value, ValueSchema* out) {
  out->types |= TypeOf(value);
  out->values.insert(value.Text());
}

// Of enum or const.
ValueSchema OfValues(const Json& values, bool is_list) {
  ValueSchema out{.types = 0};
  if (!is_list) AddValue(values, &out);
  for (size_t i = 0; is_list && values.is_array() && i < values.size(); ++i)
    AddValue(values.At(i), &out);
  return out.types == 0 ? ValueSchema() : out;
}

ValueSchema SchemaReader::AnyOf(const Json& branches, int depth) {
  std::optional<ValueSchema> out;
  for (size_t i = 0; branches.is_array() && i < branches.size(); ++i) {
    const ValueSchema branch = Values(branches.At(i), depth + 1);
    out = out ? Either(*out, branch) : branch;
  }
  if (out) out->plain_text = false;
  return out.value_or(ValueSchema());
}

ValueSchema SchemaReader::Values(const Json& schema, int depth) {
  if (TooMuch(schema, depth)) return {};
  ValueSchema out;
  uint8_t spoken_of = 0;
  bool said = false;
  bool nullable = false;
  // Visits every member, also those that are null.
  const Status visited =
      schema.ForEachMember([&](const std::string& key, const Json& value) -> Status {
        spoken_of |= TypesOfKeyword(key);
        std::optional<ValueSchema> part;
        if (key == "type") part = OfType(value);
        if (key == "enum") part = OfValues(value, true);
        if (key == "const") part = OfValues(value, false);
        if (key == "anyOf" || key == "oneOf") part = AnyOf(value, depth);
        if (key == "$ref")
          if (const auto referred = Referred(schema, root_)) part = Values(*referred, depth + 1);
        if (part && key != "type") part->plain_text = false;
        if (part) out = Both(out, *part);
        said = said || part.has_value();
        for (size_t i = 0; key == "allOf" && value.is_array() && i < value.size(); ++i) {
          ValueSchema one = Values(value.At(i), depth + 1);
          one.plain_text = false;
          out = Both(out, one);
          said = true;
        }
        nullable = nullable || (key == "nullable" && value.is_bool() && *value.AsBool());
        return {};
      });
  if (!visited) return {};
  if (!said && spoken_of != 0) out.types = spoken_of;
  if (nullable) out = Either(out, {.types = kJsonNull});
  return out;
}

void SchemaReader::AddParameters(const Json& schema, int depth, FunctionParameters* out) {
  if (TooMuch(schema, depth)) return;
  if (const auto properties = schema.Find("properties")) {
    const Status visited =
        properties->ForEachMember([&](const std::string& name, const Json& property) -> Status {
          const ValueSchema values = Values(property, depth + 1);
          const auto [found, is_new] = out->named.emplace(name, values);
          if (!is_new) found->second = Either(found->second, values);
          return {};
        });
    if (!visited) return;
  }
  if (const auto others = schema.Find("additionalProperties"); others && others->is_object())
    out->others = Values(*others, depth + 1);
  if (const auto referred = Referred(schema, root_)) AddParameters(*referred, depth + 1, out);
  for (const char* key : {"allOf", "anyOf", "oneOf"})
    if (const auto branches = schema.Find(key); branches && branches->is_array())
      for (size_t i = 0; i < branches->size(); ++i) AddParameters(branches->At(i), depth + 1, out);
}

}  // namespace

JsonType TypeOf(const Json& value) {
  if (value.is_object()) return kJsonObject;
  if (value.is_array()) return kJsonArray;
  if (value.is_string()) return kJsonString;
  if (value.is_bool()) return kJsonBoolean;
  if (IsNull(value)) return kJsonNull;
  if (value.is_integer()) return kJsonInteger;
  const auto number = value.AsDouble();
  return number && std::trunc(*number) == *number ? kJsonInteger : kJsonFraction;
}

ValueSchema ValuesOf(const Json& schema, const Json& root) {
  return SchemaReader(root).Values(schema, 0);
}

const ValueSchema& FunctionParameters::Of(std::string_view parameter) const {
  const auto found = named.find(parameter);
  return found == named.end() ? others : found->second;
}

FunctionParameters ParametersOf(const Json& schema) {
  FunctionParameters out;
  SchemaReader(schema).AddParameters(schema, 0, &out);
  return out;
}

}  // namespace latte
