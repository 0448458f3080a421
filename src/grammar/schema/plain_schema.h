// The requirements of one JSON schema, without references and choices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out.h"
#include "src/grammar/pattern/pattern_rules.h"
#include "src/grammar/schema/number_rules.h"

namespace latte {

// JSON's types; bits.
enum JsonType : uint8_t {
  kNullType = 1,
  kBooleanType = 2,
  kIntegerType = 4,
  kFractionType = 8,  // numbers that are no integers; `number` is both
  kStringType = 16,
  kArrayType = 32,
  kObjectType = 64,
  kAllTypes = 127,
};
constexpr uint8_t kNumberType = kIntegerType | kFractionType;

struct CountRange {
  int64_t least = 0;
  int64_t most = -1;  // no bound

  bool empty() const { return most >= 0 && least > most; }
  bool free() const { return least == 0 && most < 0; }
  bool Contains(int64_t n) const { return n >= least && (most < 0 || n <= most); }
};

// Schemas of members and items are kept as they are: they may have references and choices.
struct PlainSchema {
  using Named = std::vector<std::pair<std::string, JsonOut>>;

  std::string path;  // in the document, for messages
  uint8_t types = kAllTypes;
  bool is_typed = false;  // types were given; else they follow from the constraints
  std::optional<std::vector<JsonOut>> values;  // of enum and const

  NumberRange range;
  std::vector<int64_t> factors;  // of multipleOf

  CountRange length;
  std::vector<std::string> patterns;
  std::vector<std::string> formats;

  CountRange items_count;
  std::vector<JsonOut> prefix;
  std::optional<JsonOut> items;

  CountRange members_count;
  Named properties;
  std::vector<std::string> required;
  Named pattern_properties;
  std::optional<JsonOut> additional;
  std::vector<JsonOut> names;  // propertyNames

  bool limits_numbers() const { return range.low || range.high || !factors.empty(); }
  bool limits_texts() const { return !length.free() || !patterns.empty() || !formats.empty(); }
  bool limits_arrays() const { return !items_count.free() || !prefix.empty() || items; }
  bool limits_objects() const {
    return !members_count.free() || !properties.empty() || !required.empty() ||
           !pattern_properties.empty() || additional || !names.empty();
  }
  // The types that an answer may have: those given, else those with constraints, else all.
  uint8_t Types() const;
  bool Requires(std::string_view name) const;
  const JsonOut* Property(std::string_view name) const;
};

// "grammar: 'properties.a': " for the path "properties.a".
std::string SchemaPlace(const std::string& path);
std::string SchemaPath(const std::string& path, std::string_view key);

// Reads the keywords of a schema but for $ref, allOf, anyOf, oneOf and unevaluated….
// Errors: kInvalidArgument for a keyword with a wrong value; kUnsupported for one that cannot be
// enforced.
[[nodiscard]] Result<PlainSchema> ReadPlainSchema(const JsonOut& schema, std::string path);

// What demands both. Nothing if no value can match. Errors: kUnsupported.
[[nodiscard]] Result<std::optional<PlainSchema>> MergeSchemas(const PlainSchema& a,
                                                              const PlainSchema& b);

// The schema of answers: of the types that have constraints, with objects that have no members
// which it does not name, and tuples that end.
PlainSchema Closed(PlainSchema schema);

// The texts that match: of patterns, formats and lengths.
[[nodiscard]] Result<PatternSet> TextsOf(const PlainSchema& schema, PatternEnds ends);

// The schema of the member `name`: in properties and in patterns that match, else in
// additionalProperties; none if that is absent. Errors: as ParsePattern and IsInSet.
[[nodiscard]] Result<std::optional<JsonOut>> MemberSchema(const PlainSchema& schema,
                                                          const std::string& name);

// Whether one value of enum or const matches the rest of the schema.
// Errors: kUnsupported where that is not known.
[[nodiscard]] Result<bool> Holds(const PlainSchema& schema, const JsonOut& value);

}  // namespace latte
