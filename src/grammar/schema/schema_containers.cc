// Arrays and objects.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/grammar/schema/schema_writer.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr size_t kLongExpression = 160;
constexpr size_t kMostMemberStates = 10'000;
constexpr size_t kMostNameChars = 64;
constexpr size_t kMostNamePrefixes = 12;  // a mask of all tokens is computed for each
// Of a pair of members that may both be left out: 12 µs.
constexpr int64_t kPairsPerPrice = 80;

// The first characters of a name, at most so many.
std::string PrefixOf(std::string_view name, size_t length) {
  std::string out;
  for (size_t i = 0; i < length && !name.empty(); ++i) {
    const auto bytes = static_cast<size_t>(DecodeUtf8(name).bytes);
    out += name.substr(0, bytes);
    name.remove_prefix(bytes);
  }
  return out;
}

// What no other name may be: one of `names`. Many of them would take many rules, so that no other
// name begins as one of them does.
Pattern PatternOfNames(const std::set<std::string>& names) {
  size_t length = 0;
  for (std::set<std::string> prefixes; length <= kMostNameChars; ++length) {
    for (const std::string& name : names) prefixes.insert(PrefixOf(name, length));
    if (prefixes.size() > kMostNamePrefixes) break;
  }
  const bool is_cut = length <= kMostNameChars;
  std::set<std::string> begins;
  std::vector<Pattern> texts;
  for (const std::string& name : names) {
    const std::string begin = is_cut ? PrefixOf(name, std::max<size_t>(1, length - 1)) : name;
    if (begin == name)
      texts.push_back(Pattern::Text(name));
    else if (begins.insert(begin).second)
      texts.push_back(Pattern::Sequence({Pattern::Text(begin), Pattern::AnyText()}));
  }
  return Pattern::Choice(std::move(texts));
}

// Whether members are allowed that the schema does not name. Without additionalProperties: only if
// it names none, or fewer than it demands.
bool IsOpen(const PlainSchema& schema, size_t named) {
  if (schema.additional) return *schema.additional != JsonOut(false);
  return (schema.properties.empty() && schema.pattern_properties.empty()) ||
         schema.members_count.least > static_cast<int64_t>(named);
}

Result<Pattern> NamePattern(const PlainSchema& schema, const std::string& regex, PatternEnds ends) {
  auto out = ParsePattern(regex, ends);
  if (!out)
    return Fail(out.error().code,
                fmt::format("{}'patternProperties': '{}': {}", SchemaPlace(schema.path), regex,
                            out.error().message));
  return out;
}

// A member that may be left out is a way to go on for all such members before it.
int64_t PriceOfOptionals(int64_t optional) { return optional * optional / 2 / kPairsPerPrice; }

}  // namespace

// A long expression as a rule, so that what contains it several times stays short.
std::string SchemaWriter::Short(std::string expression) {
  return expression.size() > kLongExpression ? rules_.Add("part", expression) : expression;
}

Result<RuleExpression> SchemaWriter::Array(const PlainSchema& schema) {
  const auto [least, most] = schema.items_count;
  if (schema.items_count.empty()) return Nothing(schema.path, "'minItems' is above 'maxItems'");
  if (!schema.limits_arrays()) return RuleExpression(json_.Use(JsonRule::kArray));
  const std::string space = json_.Use(JsonRule::kSpace);
  const std::string comma = fmt::format("\",\" {}", space);
  size_t places = schema.prefix.size();
  if (most >= 0) places = std::min(places, static_cast<size_t>(most));
  // A tuple ends where its schemas end, unless more is demanded.
  const auto first = static_cast<int64_t>(places);
  const JsonOut items = schema.items.value_or(JsonOut(places == 0 || least > first));
  RuleExpression tail = "\"\"";
  if (most < 0 || most > first) {
    LATTE_ASSIGN_OR_RETURN(const RuleExpression item,
                           Inner(items, SchemaPath(schema.path, "items")));
    const int64_t low = std::max<int64_t>(0, least - first);
    const int64_t high = most < 0 ? -1 : most - first;
    if (!item && low > 0)
      return Nothing(schema.path, "'minItems' demands items that 'items' does not allow");
    if (item && first > 0)
      tail = RepeatRule(fmt::format("{} {} {}", comma, *item, space), low, high);
    if (item && first == 0) {
      tail = SequenceRule({*item, space,
                           RepeatRule(fmt::format("{} {} {}", comma, *item, space),
                                      std::max<int64_t>(0, low - 1), high < 0 ? -1 : high - 1)});
      if (low == 0) tail = OptionalRule(*tail);
    }
  }
  for (size_t i = places; i-- > 0;) {
    LATTE_ASSIGN_OR_RETURN(
        const RuleExpression item,
        Inner(schema.prefix[i], SchemaPath(schema.path, fmt::format("prefixItems[{}]", i))));
    const bool needed = static_cast<int64_t>(i) < least;
    if (item && tail)
      tail = SequenceRule({i > 0 ? comma : "\"\"", *item, space, Short(*tail)});
    else
      tail.reset();
    if (!tail && needed)
      return Nothing(schema.path, "'minItems' demands items that 'prefixItems' does not allow");
    if (!needed) tail = tail ? OptionalRule(*tail) : "\"\"";
  }
  return RuleExpression(fmt::format("\"[\" {} {} \"]\"", space, *tail));
}

Result<bool> SchemaWriter::NameMayBe(const PlainSchema& schema, const std::string& name) const {
  for (const JsonOut& names : schema.names) {
    LATTE_ASSIGN_OR_RETURN(const auto choices,
                           choices_.Of(names, SchemaPath(schema.path, "propertyNames")));
    bool matches = false;
    for (const PlainSchema& choice : choices) {
      LATTE_ASSIGN_OR_RETURN(const bool holds, Holds(choice, JsonOut(name)));
      matches |= holds && (!choice.values || std::ranges::find(*choice.values, JsonOut(name)) !=
                                                 choice.values->end());
    }
    if (!matches) return false;
  }
  return true;
}

Status SchemaWriter::AddMember(const PlainSchema& schema, const std::string& name,
                               const JsonOut& value, ObjectRules* out) {
  const bool required = schema.Requires(name);
  LATTE_ASSIGN_OR_RETURN(const bool may_be, NameMayBe(schema, name));
  RuleExpression rule;
  if (may_be) {
    LATTE_ASSIGN_OR_RETURN(rule, Inner(value, SchemaPath(schema.path, "properties." + name)));
  }
  if (!rule) {
    out->nothing |= required;
    if (required)
      Nothing(schema.path, fmt::format("nothing may be the 'required' member '{}'", name));
    return {};
  }
  const std::string space = json_.Use(JsonRule::kSpace);
  out->members.push_back({name,
                          fmt::format("{} {} \":\" {} {} {}", LiteralRule(Dump(JsonOut(name))),
                                      space, space, *rule, space),
                          required});
  return {};
}

// Members that the schema names: in properties, in required, in an enum of propertyNames.
Status SchemaWriter::AddNamed(const PlainSchema& schema, ObjectRules* out) {
  std::set<std::string> known;
  const auto add = [&](const std::string& name) -> Status {
    if (!known.insert(name).second) return {};
    LATTE_ASSIGN_OR_RETURN(const auto value, MemberSchema(schema, name));
    return AddMember(schema, name, value.value_or(JsonOut(true)), out);
  };
  for (const auto& [name, value] : schema.properties) LATTE_RETURN_IF_ERROR(add(name));
  for (const std::string& name : schema.required) LATTE_RETURN_IF_ERROR(add(name));
  if (!IsOpen(schema, out->members.size())) return {};
  for (const JsonOut& names : schema.names) {
    LATTE_ASSIGN_OR_RETURN(const auto choices, choices_.Of(names, schema.path));
    for (const PlainSchema& choice : choices)
      for (const JsonOut& name : choice.values.value_or(std::vector<JsonOut>()))
        if (name.is_string()) LATTE_RETURN_IF_ERROR(add(name.get<std::string>()));
  }
  return {};
}

// The constraints of propertyNames on names that are not listed; nothing if there are none.
Result<std::optional<PatternSet>> SchemaWriter::OtherNames(const PlainSchema& schema) const {
  PatternSet out;
  std::set<std::string> taken(schema.required.begin(), schema.required.end());
  for (const auto& [name, value] : schema.properties) taken.insert(name);
  if (!taken.empty()) out.none_of.push_back(PatternOfNames(taken));
  for (const JsonOut& names : schema.names) {
    LATTE_ASSIGN_OR_RETURN(const auto choices, choices_.Of(names, schema.path));
    if (choices.size() > 1)
      return Unsupported(SchemaPlace(schema.path) +
                         "'propertyNames' with choices cannot be enforced; leave it out");
    if (choices.empty() || choices.front().values || (choices.front().types & kStringType) == 0)
      return std::optional<PatternSet>();
    LATTE_ASSIGN_OR_RETURN(PatternSet texts, TextsOf(choices.front(), PatternEnds::kWhole));
    std::ranges::move(texts.all_of, std::back_inserter(out.all_of));
  }
  return std::optional(std::move(out));
}

// Members with other names. A name has one schema: names that match several patterns are left out.
Status SchemaWriter::AddOthers(const PlainSchema& schema, ObjectRules* out) {
  LATTE_ASSIGN_OR_RETURN(const auto names, OtherNames(schema));
  if (!names) return {};
  const auto& patterns = schema.pattern_properties;
  for (size_t i = 0; i < patterns.size(); ++i) {
    PatternSet own = *names;
    for (size_t j = 0; j < patterns.size(); ++j) {
      if (i != j && patterns[i].second == patterns[j].second) continue;
      const PatternEnds ends = i == j ? PatternEnds::kWhole : PatternEnds::kSearch;
      LATTE_ASSIGN_OR_RETURN(Pattern pattern, NamePattern(schema, patterns[j].first, ends));
      (i == j ? own.all_of : own.none_of).push_back(std::move(pattern));
    }
    LATTE_RETURN_IF_ERROR(
        AddOther(std::move(own), patterns[i].second,
                 SchemaPath(schema.path, "patternProperties." + patterns[i].first), out));
  }
  if (!IsOpen(schema, out->members.size())) return {};
  PatternSet rest = *names;
  for (const auto& [regex, value] : patterns) {
    LATTE_ASSIGN_OR_RETURN(Pattern pattern, NamePattern(schema, regex, PatternEnds::kSearch));
    rest.none_of.push_back(std::move(pattern));
  }
  return AddOther(std::move(rest), schema.additional.value_or(JsonOut(true)),
                  SchemaPath(schema.path, "additionalProperties"), out);
}

Status SchemaWriter::AddOther(PatternSet names, const JsonOut& value, const std::string& path,
                              ObjectRules* out) {
  LATTE_ASSIGN_OR_RETURN(const RuleExpression rule, Inner(value, path));
  if (!rule) return {};
  std::string name = json_.Use(JsonRule::kString);
  if (!names.all_of.empty() || !names.none_of.empty()) {
    const bool excludes = !names.none_of.empty();
    if (names.all_of.empty()) names.all_of.push_back(Pattern::AnyText());
    const auto text = JsonStringRule(names, &rules_);
    if (!text && !excludes)
      return Fail(text.error().code, fmt::format("{}the names of members: {}", SchemaPlace(path),
                                                 text.error().message));
    if (!text || !*text) return {};  // too many names to exclude: such members may be left out
    name = **text;
  }
  const std::string space = json_.Use(JsonRule::kSpace);
  out->others.push_back(
      fmt::format("{} {} \":\" {} {} {}", Short(name), space, space, *rule, space));
  return {};
}

// Members with names that are not listed, after `written` others. They may repeat one another, so
// they count as one where a least number is demanded.
RuleExpression SchemaWriter::OtherMembers(const ObjectRules& object, int64_t written,
                                          CountRange count) {
  const bool needed = written < count.least;
  if (needed && (object.others.empty() || written + 1 < count.least)) return std::nullopt;
  const int64_t most = count.most < 0 ? -1 : count.most - written;
  if (object.others.empty() || most == 0) return "\"\"";
  const std::string other = Short(*ChoiceRule(object.others));
  const std::string next = fmt::format("\",\" {} {}", json_.Use(JsonRule::kSpace), other);
  if (written > 0) return RepeatRule(next, needed ? 1 : 0, most);
  const std::string some = SequenceRule({other, RepeatRule(next, 0, most < 0 ? -1 : most - 1)});
  return needed ? some : OptionalRule(some);
}

// From the last member to the first: what may follow, for every number of members before it.
RuleExpression SchemaWriter::Members(const ObjectRules& object, CountRange count) {
  // Beyond these numbers it makes no difference how many were written.
  const auto size = static_cast<int64_t>(object.members.size());
  if (count.most >= size && object.others.empty()) count.most = -1;
  const int64_t top = count.most >= 0
                          ? std::min(count.most, size)
                          : std::clamp<int64_t>(count.least, 1, std::max<int64_t>(1, size));
  std::vector<RuleExpression> after;
  for (int64_t n = 0; n <= top; ++n) after.push_back(OtherMembers(object, n, count));
  const std::string comma = fmt::format("\",\" {}", json_.Use(JsonRule::kSpace));
  for (auto member = object.members.rbegin(); member != object.members.rend(); ++member) {
    std::vector<RuleExpression> before;
    for (int64_t n = 0; n <= top; ++n) {
      std::vector<std::string> ways;
      const bool full = n == count.most;
      const RuleExpression& next = after[static_cast<size_t>(std::min(n + 1, top))];
      if (!full && next)
        ways.push_back(SequenceRule({n > 0 ? comma : "\"\"", member->rule, *next}));
      if (!member->required && after[static_cast<size_t>(n)])
        ways.push_back(*after[static_cast<size_t>(n)]);
      RuleExpression way = ChoiceRule(ways);
      before.push_back(way ? RuleExpression(Short(*std::move(way))) : std::nullopt);
    }
    after = std::move(before);
  }
  return after.front();
}

Result<RuleExpression> SchemaWriter::Object(const PlainSchema& schema) {
  const CountRange count = schema.members_count;
  if (count.empty()) return Nothing(schema.path, "'minProperties' is above 'maxProperties'");
  if (!schema.limits_objects()) return RuleExpression(json_.Use(JsonRule::kObject));
  ObjectRules object;
  LATTE_RETURN_IF_ERROR(AddNamed(schema, &object));
  LATTE_RETURN_IF_ERROR(AddOthers(schema, &object));
  if (object.nothing) return RuleExpression();
  rules_.Charge(PriceOfOptionals(std::ranges::count_if(
      object.members, [](const Member& member) { return !member.required; })));
  const auto named = static_cast<int64_t>(object.members.size());
  if (count.least > named + 1 && !object.others.empty())
    return Unsupported(
        fmt::format("{}'minProperties' cannot be enforced above the number of members with names, "
                    "and one more: "
                    "other names may repeat",
                    SchemaPlace(schema.path)));
  if (!count.free() &&
      object.members.size() * static_cast<size_t>(std::max(count.most, count.least)) >
          kMostMemberStates)
    return Unsupported(
        SchemaPlace(schema.path) +
        "'minProperties' or 'maxProperties' with so many members cannot be enforced");
  const RuleExpression members = Members(object, count);
  if (!members)
    return Nothing(schema.path,
                   "'minProperties' or 'maxProperties' exclude what is 'required' or allowed");
  return RuleExpression(fmt::format("\"{{\" {} {} \"}}\"", json_.Use(JsonRule::kSpace), *members));
}

}  // namespace latte
