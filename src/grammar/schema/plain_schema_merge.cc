// Two schemas as one, and values against a schema.
#include <algorithm>

#include <fmt/format.h>

#include "src/grammar/pattern/text_format.h"
#include "src/grammar/schema/plain_schema.h"

namespace latte {
namespace {

bool IsFreeSchema(const JsonOut& schema) {
  return (schema.is_boolean() && schema.get<bool>()) || (schema.is_object() && schema.empty());
}

// A schema that demands both.
JsonOut Both(const JsonOut& a, const JsonOut& b) {
  if (IsFreeSchema(a) || a == b) return b;
  if (IsFreeSchema(b)) return a;
  return {{"allOf", JsonOut::array({a, b})}};
}
std::optional<JsonOut> Both(const std::optional<JsonOut>& a, const std::optional<JsonOut>& b) {
  return a && b ? Both(*a, *b) : a ? a : b;
}

CountRange Both(CountRange a, CountRange b) {
  const int64_t most = a.most < 0 ? b.most : b.most < 0 ? a.most : std::min(a.most, b.most);
  return {std::max(a.least, b.least), most};
}

// The tighter bound; sign: 1 for lows, -1 for highs.
std::optional<NumberBound> Tighter(const std::optional<NumberBound>& a,
                                   const std::optional<NumberBound>& b, int sign) {
  if (!a || !b) return a ? a : b;
  const int order = Compare(a->value, b->value) * sign;
  if (order != 0) return order > 0 ? a : b;
  return a->excluded ? a : b;
}

template <class T>
void AddNew(const std::vector<T>& from, std::vector<T>* to) {
  for (const T& item : from)
    if (std::ranges::find(*to, item) == to->end()) to->push_back(item);
}

uint8_t TypeOf(const JsonOut& value) {
  switch (value.type()) {
    case JsonOut::value_t::null:
      return kNullType;
    case JsonOut::value_t::boolean:
      return kBooleanType;
    case JsonOut::value_t::string:
      return kStringType;
    case JsonOut::value_t::array:
      return kArrayType;
    case JsonOut::value_t::object:
      return kObjectType;
    case JsonOut::value_t::number_float: {
      const auto decimal = ToDecimal(value);
      return decimal && !decimal->is_integer() ? kFractionType : kIntegerType;
    }
    default:
      return kIntegerType;
  }
}

// The schema of the item at a place.
std::optional<JsonOut> ItemAt(const PlainSchema& schema, size_t i) {
  return i < schema.prefix.size() ? std::optional(schema.prefix[i]) : schema.items;
}

void MergeArrays(const PlainSchema& a, const PlainSchema& b, PlainSchema* out) {
  out->items_count = Both(a.items_count, b.items_count);
  out->prefix.clear();
  for (size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i)
    out->prefix.push_back(Both(ItemAt(a, i), ItemAt(b, i)).value_or(JsonOut(true)));
  out->items = Both(a.items, b.items);
}

// Whether a regular expression of patternProperties matches.
Result<bool> MatchesRegex(const PlainSchema& schema, const std::string& regex,
                          std::string_view text) {
  PatternSet set;
  auto pattern = ParsePattern(regex, PatternEnds::kSearch);
  if (!pattern)
    return Fail(pattern.error().code,
                fmt::format("{}'patternProperties': '{}': {}", SchemaPlace(schema.path), regex,
                            pattern.error().message));
  set.all_of.push_back(*std::move(pattern));
  return IsInSet(set, text);
}

Status MergeObjects(const PlainSchema& a, const PlainSchema& b, PlainSchema* out) {
  out->members_count = Both(a.members_count, b.members_count);
  out->properties.clear();
  for (const auto* named : {&a, &b})
    for (const auto& [name, schema] : named->properties) {
      if (out->Property(name) != nullptr) continue;
      LATTE_ASSIGN_OR_RETURN(const auto in_a, MemberSchema(a, name));
      LATTE_ASSIGN_OR_RETURN(const auto in_b, MemberSchema(b, name));
      out->properties.emplace_back(name, Both(in_a, in_b).value_or(JsonOut(true)));
    }
  out->pattern_properties.clear();
  for (const auto& [mine, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    for (const auto& [regex, schema] : mine->pattern_properties)
      out->pattern_properties.emplace_back(
          regex, other->additional ? Both(schema, *other->additional) : schema);
  out->additional = Both(a.additional, b.additional);
  AddNew(b.required, &out->required);
  AddNew(b.names, &out->names);
  return {};
}

// Takes off types of which no value is left. false: none is left.
bool Prune(PlainSchema* schema) {
  uint8_t& types = schema->types;
  const auto drop = [&](uint8_t type) { types = static_cast<uint8_t>(types & ~type); };
  NumberRange whole = schema->range;
  whole.integers_only = true;
  if (IsEmpty(schema->range)) drop(kNumberType);
  if (IsEmpty(whole)) drop(kIntegerType);
  if (schema->length.empty()) drop(kStringType);
  if (schema->items_count.empty()) drop(kArrayType);
  if (schema->members_count.empty()) drop(kObjectType);
  if (schema->values)
    std::erase_if(*schema->values, [&](const JsonOut& v) { return (TypeOf(v) & types) == 0; });
  return types != 0 && (!schema->values || !schema->values->empty());
}

Result<bool> NumberHolds(const PlainSchema& schema, const JsonOut& value) {
  LATTE_ASSIGN_OR_RETURN(const Decimal number, ToDecimal(value));
  const auto fails = [&](const std::optional<NumberBound>& bound, int sign) {
    if (!bound) return false;
    const int order = Compare(number, bound->value) * sign;
    return order < 0 || (order == 0 && bound->excluded);
  };
  if (fails(schema.range.low, 1) || fails(schema.range.high, -1)) return false;
  return std::ranges::all_of(schema.factors, [&](int64_t factor) {
    int64_t rest = 0;
    for (const char digit : number.whole) rest = (rest * 10 + (digit - '0')) % factor;
    return rest == 0 && number.is_integer();
  });
}

}  // namespace

Result<std::optional<JsonOut>> MemberSchema(const PlainSchema& schema, const std::string& name) {
  std::optional<JsonOut> out;
  if (const JsonOut* property = schema.Property(name)) out = *property;
  bool matches = out.has_value();
  for (const auto& [regex, value] : schema.pattern_properties) {
    LATTE_ASSIGN_OR_RETURN(const bool found, MatchesRegex(schema, regex, name));
    if (found) out = Both(out, value);
    matches |= found;
  }
  return matches ? out : schema.additional;
}

Result<std::optional<PlainSchema>> MergeSchemas(const PlainSchema& a, const PlainSchema& b) {
  PlainSchema out = a;
  out.types = a.types & b.types;
  out.is_typed = a.is_typed || b.is_typed;
  if (b.values) {
    if (out.values)
      std::erase_if(*out.values, [&](const JsonOut& value) {
        return std::ranges::find(*b.values, value) == b.values->end();
      });
    else
      out.values = b.values;
  }
  out.range.low = Tighter(a.range.low, b.range.low, 1);
  out.range.high = Tighter(a.range.high, b.range.high, -1);
  AddNew(b.factors, &out.factors);
  out.length = Both(a.length, b.length);
  AddNew(b.patterns, &out.patterns);
  AddNew(b.formats, &out.formats);
  MergeArrays(a, b, &out);
  LATTE_RETURN_IF_ERROR(MergeObjects(a, b, &out));
  return Prune(&out) ? std::optional(std::move(out)) : std::nullopt;
}

PlainSchema Closed(PlainSchema schema) {
  schema.types = schema.Types();
  schema.is_typed = true;
  if (!schema.additional && (!schema.properties.empty() || !schema.pattern_properties.empty()))
    schema.additional = false;
  if (!schema.items && !schema.prefix.empty()) schema.items = false;
  return schema;
}

Result<PatternSet> TextsOf(const PlainSchema& schema, PatternEnds ends) {
  PatternSet out;
  for (const std::string& regex : schema.patterns) {
    auto pattern = ParsePattern(regex, ends);
    if (!pattern)
      return Fail(pattern.error().code, fmt::format("{}'pattern': {}", SchemaPlace(schema.path),
                                                    pattern.error().message));
    out.all_of.push_back(*std::move(pattern));
  }
  for (const std::string& format : schema.formats) {
    LATTE_ASSIGN_OR_RETURN(Pattern pattern,
                           ParsePattern(TextFormatRegex(format), PatternEnds::kWhole));
    out.all_of.push_back(std::move(pattern));
  }
  if (!schema.length.free())
    out.all_of.push_back(Pattern::Repeat(Pattern::Chars(CharSet::All()),
                                         static_cast<int>(schema.length.least),
                                         static_cast<int>(schema.length.most)));
  return out;
}

Result<bool> Holds(const PlainSchema& schema, const JsonOut& value) {
  if ((TypeOf(value) & schema.types) == 0) return false;
  if (value.is_number() && schema.limits_numbers()) return NumberHolds(schema, value);
  if (value.is_string() && schema.limits_texts()) {
    LATTE_ASSIGN_OR_RETURN(const PatternSet texts, TextsOf(schema, PatternEnds::kSearch));
    return IsInSet(texts, value.get_ref<const std::string&>());
  }
  if ((value.is_array() && schema.limits_arrays()) ||
      (value.is_object() && schema.limits_objects()))
    return Unsupported(fmt::format(
        "{}constraints of arrays and objects next to 'enum' or 'const' cannot be enforced; leave "
        "them out",
        SchemaPlace(schema.path)));
  return true;
}

}  // namespace latte
