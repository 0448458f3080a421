#include "src/grammar/schema/schema_writer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "src/grammar/pattern/rule_price.h"
#include "src/grammar/schema/schema_keywords.h"
#include "src/grammar/schema/schema_rules.h"

namespace latte {
namespace {

constexpr size_t kMostReferences = 1'000;  // that lead to one another
constexpr int64_t kMostFactor = 1'000'000'000;

const JsonOut* MemberOf(const JsonOut& schema, const char* key) {
  const auto at = schema.is_object() ? schema.find(key) : schema.end();
  return at == schema.end() || at->is_null() ? nullptr : &*at;
}

// Whether a schema says nothing but `key`.
bool HasOnly(const JsonOut& schema, std::string_view key) {
  return std::ranges::all_of(schema.items(), [&](const auto& member) {
    return member.key() == key || member.value().is_null() || !IsConstraint(member.key());
  });
}

tl::unexpected<Error> Circle(const std::string& path) {
  return Unsupported(SchemaPlace(path) + "'$ref' that leads back to itself cannot be enforced");
}

}  // namespace

Result<std::string> SchemaWriter::Write(const JsonOut& schema) {
  LATTE_ASSIGN_OR_RETURN(const RuleExpression root, Value(schema, ""));
  if (!root) return InvalidArgument(cause_ + "; no value matches this schema, so give a wider one");
  for (; !waiting_.empty(); waiting_.pop_front()) {
    LATTE_ASSIGN_OR_RETURN(const RuleExpression body,
                           Compute(waiting_.front().schema, waiting_.front().path));
    if (!body)
      return Unsupported(SchemaPlace(waiting_.front().path) +
                         "a part of a deep schema that no value matches cannot be enforced");
    rules_.Define(known_[Dump(waiting_.front().schema)].rule, *body);
    LATTE_RETURN_IF_ERROR(CheckPrice(waiting_.front().path, 0));
  }
  std::string rules = rules_.Text(*root) + json_.Text();
  LATTE_RETURN_IF_ERROR(CheckEnds(rules));
  return rules;
}

Status SchemaWriter::CheckPrice(const std::string& path, int64_t before) const {
  if (price() <= kMostRulePrice) return {};
  return Unsupported(
      fmt::format("{}expected a schema of a price of at most {}, found {} with this part, {} of "
                  "them for it; use "
                  "fewer or simpler parts, and lower the lengths and the counts in patterns",
                  SchemaPlace(path), kMostRulePrice, price(), price() - before));
}

Status SchemaWriter::CheckEnds(const std::string& rules) const {
  const auto shapes = ShapesOf(rules);
  for (const auto& [schema, known] : known_) {
    const auto shape = shapes.find(known.rule);
    if (known.nothing || shape == shapes.end() || shape->second.ends) continue;
    return InvalidArgument(
        SchemaPlace(known.path) +
        "a schema that demands itself inside of itself has no end; no value matches it, so let the "
        "member or item that leads back be absent");
  }
  return {};
}

RuleExpression SchemaWriter::Nothing(const std::string& path, std::string_view cause) {
  if (cause_.empty()) cause_ = fmt::format("{}{}", SchemaPlace(path), cause);
  return std::nullopt;
}

Result<const JsonOut*> SchemaWriter::Followed(const JsonOut& schema,
                                              const std::string& path) const {
  const JsonOut* out = &schema;
  for (size_t i = 0; i <= kMostReferences; ++i) {
    const JsonOut* reference = MemberOf(*out, "$ref");
    if (reference == nullptr || !HasOnly(*out, "$ref")) return out;
    if (!reference->is_string())
      return InvalidArgument(SchemaPlace(path) + "'$ref': expected a string");
    LATTE_ASSIGN_OR_RETURN(out, document_.Resolve(reference->get<std::string>(), path));
  }
  return Circle(path);
}

Result<RuleExpression> SchemaWriter::Inner(const JsonOut& schema, const std::string& path) {
  ++level_;
  auto out = Value(schema, path);
  --level_;
  return out;
}

Result<RuleExpression> SchemaWriter::Value(const JsonOut& given, const std::string& path) {
  LATTE_ASSIGN_OR_RETURN(const JsonOut* schema, Followed(given, path));
  const auto [at, is_new] = known_.try_emplace(Dump(*schema));
  Known& known = at->second;
  if (!is_new) {
    if (known.nothing) return RuleExpression();
    if (!known.done && known.level == level_) return Circle(path);
    known.used = true;
    return RuleExpression(known.rule);
  }
  known.rule = rules_.NewName("value");
  known.path = path;
  known.level = level_;
  const int64_t before = price();
  if (!stack_.Left()) {  // later, with less on the stack
    known.done = true;
    waiting_.push_back({*schema, path});
    return RuleExpression(known.rule);
  }
  LATTE_ASSIGN_OR_RETURN(const RuleExpression body, Compute(*schema, path));
  known.done = true;
  known.nothing = !body;
  if (!body && known.used)
    return Unsupported(SchemaPlace(path) +
                       "a schema that contains itself, and that no value matches");
  if (!body) return RuleExpression();
  rules_.Define(known.rule, *body);
  LATTE_RETURN_IF_ERROR(CheckPrice(path, before));
  return RuleExpression(known.rule);
}

Result<RuleExpression> SchemaWriter::Compute(const JsonOut& schema, const std::string& path) {
  bool is_plain = true;
  for (const char* key : {"$ref", "allOf", "anyOf", "oneOf", "unevaluatedProperties"})
    is_plain &= MemberOf(schema, key) == nullptr;
  if (is_plain) {
    LATTE_ASSIGN_OR_RETURN(const PlainSchema plain, ReadPlainSchema(schema, path));
    return Plain(plain);
  }
  std::vector<std::string> ways;
  // Choices without anything next to them may contain the schema itself.
  const bool any = HasOnly(schema, "anyOf");
  const bool one = HasOnly(schema, "oneOf");
  if (!any) {
    LATTE_ASSIGN_OR_RETURN(const std::vector<PlainSchema> choices, choices_.Of(schema, path));
    for (const PlainSchema& choice : choices) {
      if (one) break;  // they exclude one another, and are written below
      LATTE_ASSIGN_OR_RETURN(const RuleExpression way, Plain(choice));
      if (way) ways.push_back(*way);
    }
    if (!one && ways.empty())
      return Nothing(
          path, "'allOf', 'anyOf', 'oneOf' or '$ref' and what is next to it exclude each other");
    if (!one) return ChoiceRule(ways);
  }
  const char* const key = any ? "anyOf" : "oneOf";
  const JsonOut& parts = schema[key];
  if (!parts.is_array() || parts.empty())
    return InvalidArgument(
        fmt::format("{}'{}': expected an array of one or more schemas", SchemaPlace(path), key));
  for (size_t i = 0; i < parts.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const RuleExpression way,
                           Value(parts[i], SchemaPath(path, fmt::format("{}[{}]", key, i))));
    if (way && std::ranges::find(ways, *way) == ways.end()) ways.push_back(*way);
  }
  return ChoiceRule(ways);
}

Result<RuleExpression> SchemaWriter::Plain(const PlainSchema& schema) {
  if (schema.values) return Values(schema);
  const uint8_t types = schema.Types();
  const bool limited = schema.limits_numbers() || schema.limits_texts() || schema.limits_arrays() ||
                       schema.limits_objects();
  if (types == kAllTypes && !limited) return RuleExpression(json_.Use(JsonRule::kValue));
  std::vector<std::string> ways;
  const auto add = [&](Result<RuleExpression> way) -> Status {
    if (!way) return tl::unexpected(std::move(way).error());
    if (*way) ways.push_back(**std::move(way));
    return {};
  };
  if ((types & kObjectType) != 0) LATTE_RETURN_IF_ERROR(add(Object(schema)));
  if ((types & kArrayType) != 0) LATTE_RETURN_IF_ERROR(add(Array(schema)));
  if ((types & kStringType) != 0) LATTE_RETURN_IF_ERROR(add(Text(schema)));
  if ((types & kNumberType) != 0) LATTE_RETURN_IF_ERROR(add(Number(schema, types)));
  if ((types & kBooleanType) != 0) ways.emplace_back(R"(("true" | "false"))");
  if ((types & kNullType) != 0) ways.emplace_back(R"("null")");
  if (types == 0)
    return Nothing(schema.path, "false allows nothing, or two 'type' exclude each other");
  return ChoiceRule(ways);
}

Result<RuleExpression> SchemaWriter::Values(const PlainSchema& schema) {
  std::vector<std::string> ways;
  for (const JsonOut& value : *schema.values) {
    LATTE_ASSIGN_OR_RETURN(const bool holds, Holds(schema, value));
    if (holds) ways.push_back(LiteralRule(Dump(value)));
  }
  if (ways.empty())
    return Nothing(schema.path, "no value of 'enum' or 'const' matches what is next to it");
  return ChoiceRule(ways);
}

Result<RuleExpression> SchemaWriter::Number(const PlainSchema& schema, uint8_t types) {
  NumberRange range = schema.range;
  range.integers_only = (types & kFractionType) == 0;
  int64_t factor = 1;
  for (const int64_t other : schema.factors) {
    factor = std::lcm(factor, other);
    if (factor > kMostFactor)
      return Unsupported(SchemaPlace(schema.path) + "so large a 'multipleOf' cannot be enforced");
  }
  auto out = schema.factors.empty() ? NumberRule(range) : MultiplesRule(factor, range, &rules_);
  if (!out) return Fail(out.error().code, SchemaPlace(schema.path) + out.error().message);
  if (!*out)
    return Nothing(schema.path,
                   "'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum' or "
                   "'multipleOf' exclude each other");
  return out;
}

Result<RuleExpression> SchemaWriter::Text(const PlainSchema& schema) {
  if (!schema.limits_texts()) return RuleExpression(json_.Use(JsonRule::kString));
  if (schema.length.empty()) return Nothing(schema.path, "'minLength' is above 'maxLength'");
  if (schema.patterns.empty() && schema.formats.empty())
    return RuleExpression(json_.UseString(schema.length.least, schema.length.most));
  for (const PatternEnds ends : {PatternEnds::kWhole, PatternEnds::kSearch}) {
    LATTE_ASSIGN_OR_RETURN(const PatternSet texts, TextsOf(schema, ends));
    auto text = JsonStringRule(texts, &rules_);
    if (!text)
      return Fail(text.error().code,
                  fmt::format("{}'pattern', 'format' or a length next to each other: {}",
                              SchemaPlace(schema.path), text.error().message));
    if (*text) return text;
  }
  return Nothing(schema.path, "'pattern', 'format', 'minLength' or 'maxLength' exclude each other");
}

Result<std::string> SchemaRules(const std::string& schema, std::string_view part) {
  LATTE_ASSIGN_OR_RETURN(const SchemaDocument document, SchemaDocument::Read(schema));
  const JsonOut* const root = SchemaDocument::At(document.root(), part);
  if (root == nullptr)
    return InvalidArgument(fmt::format("grammar: the schema has no part '{}'", part));
  return SchemaWriter(document).Write(*root);
}

}  // namespace latte
