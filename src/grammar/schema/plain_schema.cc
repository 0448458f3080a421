#include "src/grammar/schema/plain_schema.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "src/grammar/pattern/text_format.h"
#include "src/grammar/schema/schema_keywords.h"

namespace latte {
namespace {

constexpr int64_t kMostCount = 100'000;
constexpr size_t kMostMembersOfSchema = 2'000;     // each is compared with the others
constexpr size_t kMostPatternsOfMembers = 20'000;  // members, each compared with all patterns

constexpr std::array<std::pair<std::string_view, uint8_t>, 7> kTypeNames = {{
    {"null", kNullType},
    {"boolean", kBooleanType},
    {"integer", kIntegerType},
    {"number", kNumberType},
    {"string", kStringType},
    {"array", kArrayType},
    {"object", kObjectType},
}};

// Formats of numbers in OpenAPI, and their ranges. No range: they say nothing about the value.
struct NumberFormat {
  std::string_view name;
  std::string_view low;
  std::string_view high;
};
constexpr std::array<NumberFormat, 11> kNumberFormats = {{
    {"int8", "-128", "127"},
    {"int16", "-32768", "32767"},
    {"int32", "-2147483648", "2147483647"},
    {"int64", "-9223372036854775808", "9223372036854775807"},
    {"uint8", "0", "255"},
    {"uint16", "0", "65535"},
    {"uint32", "0", "4294967295"},
    {"uint64", "0", "18446744073709551615"},
    {"uint", "0", "18446744073709551615"},
    {"float", "", ""},
    {"double", "", ""},
}};

// Reads the keywords of one schema.
class PlainReader {
 public:
  PlainReader(const JsonOut& schema, PlainSchema* out) : schema_(schema), out_(*out) {}

  Status Read() {
    LATTE_RETURN_IF_ERROR(ReadTypes());
    LATTE_RETURN_IF_ERROR(ReadValues());
    LATTE_RETURN_IF_ERROR(ReadNumbers());
    LATTE_RETURN_IF_ERROR(ReadTexts());
    LATTE_RETURN_IF_ERROR(ReadArrays());
    return ReadObjects();
  }

 private:
  // Null is absent.
  const JsonOut* Find(const char* key) const {
    const auto at = schema_.find(key);
    return at == schema_.end() || at->is_null() ? nullptr : &*at;
  }
  tl::unexpected<Error> Wrong(std::string_view key, std::string_view expected) const {
    return InvalidArgument(
        fmt::format("{}'{}': expected {}", SchemaPlace(out_.path), key, expected));
  }
  tl::unexpected<Error> Cannot(std::string_view key, std::string_view why) const {
    return Unsupported(
        fmt::format("{}'{}' cannot be enforced{}; leave it out", SchemaPlace(out_.path), key, why));
  }
  Status ReadTypes();
  Status ReadValues();
  Status ReadNumbers();
  Status ReadNumberFormat(const std::string& format);
  Status ReadBound(const char* key, bool excluded, bool is_low);
  Status ReadFactor();
  Status ReadTexts();
  Status ReadArrays();
  Status ReadObjects();
  Status CheckMembers() const;
  Status ReadCounts(const char* least, const char* most, CountRange* out);
  Status ReadSchema(const char* key, std::optional<JsonOut>* out);
  Status ReadNamed(const char* key, PlainSchema::Named* out);

  const JsonOut& schema_;
  PlainSchema& out_;
};

Status PlainReader::ReadTypes() {
  const JsonOut* type = Find("type");
  if (type == nullptr) return {};
  out_.is_typed = true;
  out_.types = 0;
  const JsonOut list = type->is_array() ? *type : JsonOut::array({*type});
  for (const JsonOut& name : list) {
    const auto known = std::ranges::find_if(kTypeNames, [&](const auto& entry) {
      return name.is_string() && name.get_ref<const std::string&>() == entry.first;
    });
    if (known == kTypeNames.end())
      return Wrong("type",
                   "null, boolean, integer, number, string, array or object, found " + Dump(name));
    out_.types |= known->second;
  }
  return list.empty() ? Wrong("type", "at least one type") : Status();
}

Status PlainReader::ReadValues() {
  if (const JsonOut* list = Find("enum")) {
    if (!list->is_array() || list->empty()) return Wrong("enum", "an array of values");
    out_.values.emplace(list->begin(), list->end());
  }
  const auto fixed = schema_.find("const");
  if (fixed == schema_.end()) return {};
  const bool allowed =
      !out_.values || std::ranges::find(*out_.values, *fixed) != out_.values->end();
  out_.values.emplace();
  if (allowed) out_.values->push_back(*fixed);
  return {};
}

Status PlainReader::ReadBound(const char* key, bool excluded, bool is_low) {
  const JsonOut* value = Find(key);
  if (value == nullptr) return {};
  if (!value->is_number()) return Wrong(key, "a number");
  auto decimal = ToDecimal(*value);
  if (!decimal) return Cannot(key, " (" + decimal.error().message + ")");
  std::optional<NumberBound>& bound = is_low ? out_.range.low : out_.range.high;
  const int order = bound ? Compare(*decimal, bound->value) * (is_low ? 1 : -1) : 1;
  if (order > 0) bound = NumberBound{*std::move(decimal), excluded};
  if (order == 0) bound->excluded |= excluded;
  return {};
}

Status PlainReader::ReadFactor() {
  const JsonOut* factor = Find("multipleOf");
  if (factor == nullptr) return {};
  if (!factor->is_number()) return Wrong("multipleOf", "a number above 0");
  const double value = factor->get<double>();
  if (value <= 0) return Wrong("multipleOf", "a number above 0");
  if (value != static_cast<double>(static_cast<int64_t>(std::min(value, 1e9))))
    return Cannot("multipleOf", " unless it is an integer up to 1000000000");
  out_.factors.push_back(static_cast<int64_t>(value));
  return {};
}

Status PlainReader::ReadNumbers() {
  LATTE_RETURN_IF_ERROR(ReadBound("minimum", false, true));
  LATTE_RETURN_IF_ERROR(ReadBound("exclusiveMinimum", true, true));
  LATTE_RETURN_IF_ERROR(ReadBound("maximum", false, false));
  LATTE_RETURN_IF_ERROR(ReadBound("exclusiveMaximum", true, false));
  return ReadFactor();
}

// Whether `format` is one of a number.
Status PlainReader::ReadNumberFormat(const std::string& format) {
  const auto known = std::ranges::find(kNumberFormats, format, &NumberFormat::name);
  if (known == kNumberFormats.end())
    return Cannot("format", fmt::format(" with the value '{}': expected one of {}", format,
                                        TextFormatNames()));
  if ((out_.types & ~kNumberType & ~kNullType) != 0)
    return Cannot("format",
                  fmt::format(" with the value '{}' unless type is integer or number", format));
  for (const std::string_view text : {known->low, known->high}) {
    if (text.empty()) continue;
    const bool is_low = text == known->low;
    NumberBound bound;
    bound.value.negative = text.starts_with('-');
    bound.value.whole = text.substr(bound.value.negative ? 1 : 0);
    std::optional<NumberBound>& old = is_low ? out_.range.low : out_.range.high;
    if (!old || Compare(bound.value, old->value) * (is_low ? 1 : -1) > 0) old = std::move(bound);
  }
  return {};
}

Status PlainReader::ReadCounts(const char* least, const char* most, CountRange* out) {
  for (const char* key : {least, most}) {
    const JsonOut* value = Find(key);
    if (value == nullptr) continue;
    if (!value->is_number() || value->get<double>() < 0 ||
        value->get<double>() !=
            static_cast<double>(static_cast<int64_t>(std::min(value->get<double>(), 1e15))))
      return Wrong(key, "a count");
    const auto count = static_cast<int64_t>(value->get<double>());
    if (key == most) {
      out->most = count <= kMostCount ? count : -1;
      // Answers are shorter anyway.
    } else if (count > kMostCount) {
      return Cannot(key, fmt::format(" above {}", kMostCount));
    } else {
      out->least = count;
    }
  }
  return {};
}

Status PlainReader::ReadTexts() {
  LATTE_RETURN_IF_ERROR(ReadCounts("minLength", "maxLength", &out_.length));
  if (const JsonOut* pattern = Find("pattern")) {
    if (!pattern->is_string()) return Wrong("pattern", "a regular expression");
    out_.patterns.push_back(pattern->get<std::string>());
  }
  const JsonOut* format = Find("format");
  if (format == nullptr) return {};
  if (!format->is_string()) return Wrong("format", "a string");
  const auto& name = format->get_ref<const std::string&>();
  if (TextFormatRegex(name).empty()) return ReadNumberFormat(name);
  out_.formats.push_back(name);
  return {};
}

Status PlainReader::ReadSchema(const char* key, std::optional<JsonOut>* out) {
  const JsonOut* schema = Find(key);
  if (schema == nullptr) return {};
  if (!schema->is_object() && !schema->is_boolean()) return Wrong(key, "a schema");
  *out = *schema;
  return {};
}

Status PlainReader::ReadArrays() {
  LATTE_RETURN_IF_ERROR(ReadCounts("minItems", "maxItems", &out_.items_count));
  if (const JsonOut* unique = Find("uniqueItems")) {
    if (!unique->is_boolean()) return Wrong("uniqueItems", "true or false");
    if (unique->get<bool>()) return Cannot("uniqueItems", "");
  }
  // Before 2020-12, `items` was the tuple and `additionalItems` what follows it.
  const JsonOut* items = Find("items");
  const bool is_old = items != nullptr && items->is_array();
  const char* const tuple = is_old ? "items" : "prefixItems";
  if (is_old && Find("prefixItems") != nullptr)
    return Cannot("items", " as an array next to prefixItems");
  if (const JsonOut* prefix = Find(tuple)) {
    if (!prefix->is_array()) return Wrong(tuple, "an array of schemas");
    out_.prefix.assign(prefix->begin(), prefix->end());
  }
  return ReadSchema(is_old ? "additionalItems" : "items", &out_.items);
}

Status PlainReader::ReadNamed(const char* key, PlainSchema::Named* out) {
  const JsonOut* schemas = Find(key);
  if (schemas == nullptr) return {};
  if (!schemas->is_object()) return Wrong(key, "an object of schemas");
  for (const auto& [name, schema] : schemas->items()) out->emplace_back(name, schema);
  return {};
}

Status PlainReader::CheckMembers() const {
  const size_t members = std::max(out_.properties.size(), out_.required.size());
  if (members > kMostMembersOfSchema)
    return Unsupported(
        fmt::format("{}expected an object of at most {} members, found {}; use several objects",
                    SchemaPlace(out_.path), kMostMembersOfSchema, members));
  if ((members + 1) * out_.pattern_properties.size() > kMostPatternsOfMembers)
    return Cannot("patternProperties", fmt::format(": expected at most {} for {} members, found {}",
                                                   kMostPatternsOfMembers / (members + 1), members,
                                                   out_.pattern_properties.size()));
  return {};
}

Status PlainReader::ReadObjects() {
  LATTE_RETURN_IF_ERROR(ReadCounts("minProperties", "maxProperties", &out_.members_count));
  LATTE_RETURN_IF_ERROR(ReadNamed("properties", &out_.properties));
  LATTE_RETURN_IF_ERROR(ReadNamed("patternProperties", &out_.pattern_properties));
  LATTE_RETURN_IF_ERROR(ReadSchema("additionalProperties", &out_.additional));
  std::optional<JsonOut> names;
  LATTE_RETURN_IF_ERROR(ReadSchema("propertyNames", &names));
  if (names) out_.names.push_back(*std::move(names));
  const JsonOut* required = Find("required");
  if (required == nullptr) return CheckMembers();
  if (!required->is_array()) return Wrong("required", "an array of names");
  std::set<std::string> known;
  for (const JsonOut& name : *required) {
    if (!name.is_string()) return Wrong("required", "an array of names");
    if (known.insert(name.get<std::string>()).second)
      out_.required.push_back(name.get<std::string>());
  }
  return CheckMembers();
}

}  // namespace

std::string SchemaPlace(const std::string& path) {
  return path.empty() ? "grammar: " : fmt::format("grammar: '{}': ", path);
}

std::string SchemaPath(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

uint8_t PlainSchema::Types() const {
  if (is_typed || values) return types;
  const uint8_t limited = static_cast<uint8_t>(
      (limits_numbers() ? kNumberType : 0) | (limits_texts() ? kStringType : 0) |
      (limits_arrays() ? kArrayType : 0) | (limits_objects() ? kObjectType : 0));
  return limited == 0 ? types : static_cast<uint8_t>(types & limited);
}

bool PlainSchema::Requires(std::string_view name) const {
  return std::ranges::find(required, name) != required.end();
}

const JsonOut* PlainSchema::Property(std::string_view name) const {
  const auto at = std::ranges::find(properties, name, &std::pair<std::string, JsonOut>::first);
  return at == properties.end() ? nullptr : &at->second;
}

Result<PlainSchema> ReadPlainSchema(const JsonOut& schema, std::string path) {
  PlainSchema out;
  out.path = std::move(path);
  if (schema.is_boolean()) {
    if (!schema.get<bool>()) out.types = 0;
    return out;
  }
  if (!schema.is_object())
    return InvalidArgument(SchemaPlace(out.path) + "expected a JSON schema, which is an object");
  for (const std::string_view key : KeywordsNotEnforced())
    if (const auto at = schema.find(key); at != schema.end() && !at->is_null())
      return Unsupported(
          fmt::format("{}'{}' cannot be enforced; leave it out", SchemaPlace(out.path), key));
  LATTE_RETURN_IF_ERROR(PlainReader(schema, &out).Read());
  return out;
}

}  // namespace latte
