// The filters; see call.h. They behave as in Jinja2, and `tojson` as in Hugging Face's
// transformers.
#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "src/jinja/call.h"
#include "src/jinja/json.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

using Values = std::vector<Value>;
// `name` is the name of the filter, for filters that share a function.
using Filter = Result<Value> (*)(const std::string& name, const Value& input,
                                 const Arguments& arguments, Budget* budget);

Result<Value> ToJson(const std::string&, const Value& input, const Arguments& arguments,
                     Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a,
                         Bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = Truthy(a[0]);
  style.sort_keys = Truthy(a[3]);
  if (Given(a[1])) {
    style.pretty = true;
    style.item_separator.resize(1);  // drops the space
    if (!a[1].is_integer() && !a[1].Is(Kind::kString))
      return InvalidArgument("tojson: indent must be an integer or a string");
    if (a[1].Is(Kind::kString)) style.indent = a[1].bytes();
    if (a[1].is_integer() && a[1].integer() > 64)
      return InvalidArgument("tojson: indent must be at most 64");
    if (a[1].is_integer() && a[1].integer() > 0)
      style.indent = fmt::format("{:{}}", "", a[1].integer());
  }
  if (Given(a[2])) {
    const bool pair = a[2].Is(Kind::kList) && a[2].list().items.size() == 2 &&
                      a[2].list().items[0].Is(Kind::kString) &&
                      a[2].list().items[1].Is(Kind::kString);
    if (!pair) return InvalidArgument("tojson: separators must be two strings");
    style.item_separator = a[2].list().items[0].bytes();
    style.key_separator = a[2].list().items[1].bytes();
  }
  LATTE_ASSIGN_OR_RETURN(std::string json, DumpJson(input, style, budget));
  return Value::String(Text(std::move(json), false));
}

Result<Value> Trim(const std::string&, const Value& input, const Arguments& arguments,
                   Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  return CallMethod(Value::String(text), "strip", arguments, budget);
}

Result<Value> LengthOf(const std::string&, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(const int64_t length, Length(input, budget));
  return Value::Int(length);
}

// The attribute that map(), selectattr() and join() name; dots select nested attributes.
Result<Value> AttributeOf(const Value& item, const Value& path, Budget* budget) {
  if (!path.Is(Kind::kString)) return GetItem(item, path, budget);
  Value value = item;
  for (const Text& part : Split(path.text(), ".", -1)) {
    LATTE_ASSIGN_OR_RETURN(value, GetItem(value, Value::String(part), budget));
  }
  return value;
}

Result<Value> Join(const std::string&, const Value& input, const Arguments& arguments,
                   Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"d", "attribute"}));
  LATTE_ASSIGN_OR_RETURN(const Text between, Str(a[0], budget));
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (Given(a[1])) {
      LATTE_ASSIGN_OR_RETURN(item, AttributeOf(item, a[1], budget));
    }
    LATTE_ASSIGN_OR_RETURN(const Text text, Str(item, budget));
    const size_t added = text.size() + (i > 0 ? between.size() : 0);
    if (out.size() + added > static_cast<size_t>(budget->limits().string_bytes))
      LATTE_RETURN_IF_ERROR(budget->SpendString(out.size() + added));
    LATTE_RETURN_IF_ERROR(budget->Spend(1, static_cast<int64_t>(added)));
    if (i > 0) out.Append(between);
    out.Append(text);
  }
  return Value::String(std::move(out));
}

Result<Value> Default(const std::string&, const Value& input, const Arguments& arguments, Budget*) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"default_value", "boolean"}));
  const bool missing = input.Is(Kind::kUndefined) || (Truthy(a[1]) && !Truthy(input));
  if (!missing) return input;
  return a[0].Is(Kind::kUndefined) ? Value::String("") : a[0];
}

Result<Value> FirstOrLast(const std::string& name, const Value& input, const Arguments& arguments,
                          Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  if (items.empty())
    return Value::MakeUndefined(fmt::format("no {} item, the sequence is empty", name));
  return name == "first" ? items.front() : items.back();
}

Result<Value> ToInt(const std::string&, const Value& input, const Arguments& arguments, Budget*) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"default"}));
  const Value fallback = a[0].Is(Kind::kUndefined) ? Value::Int(0) : a[0];
  if (input.is_integer()) return Value::Int(input.integer());
  double real = 0;
  if (input.Is(Kind::kFloat)) {
    real = input.number();
  } else if (input.Is(Kind::kString)) {
    const Text stripped = Strip(input.text(), {}, true, true);
    std::string_view digits = stripped.bytes();
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const char* const end = digits.data() + digits.size();
    int64_t integer = 0;
    const auto whole = std::from_chars(digits.data(), end, integer);
    if (!digits.empty() && whole.ec == std::errc() && whole.ptr == end) return Value::Int(integer);
    const auto parsed = std::from_chars(digits.data(), end, real);
    if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != end) return fallback;
  } else {
    return fallback;
  }
  if (!(std::fabs(real) < 9e18)) return fallback;
  return Value::Int(static_cast<int64_t>(real));
}

Result<Value> ToFloat(const std::string&, const Value& input, const Arguments& arguments, Budget*) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"default"}));
  const Value fallback = a[0].Is(Kind::kUndefined) ? Value::Float(0) : a[0];
  if (input.is_number()) return Value::Float(input.number());
  if (!input.Is(Kind::kString)) return fallback;
  const Text stripped = Strip(input.text(), {}, true, true);
  const std::string& digits = stripped.bytes();
  double real = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, real);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != end) return fallback;
  return Value::Float(real);
}

Result<Value> ToString(const std::string&, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(Text text, Str(input, budget));
  return Value::String(std::move(text));
}

Result<Value> ToList(const std::string& name, const Value& input, const Arguments& arguments,
                     Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(Values items, Items(input, budget));
  if (name == "reverse") std::reverse(items.begin(), items.end());
  return MakeList(std::move(items));
}

Result<Value> DictItems(const std::string&, const Value& input, const Arguments& arguments,
                        Budget* budget) {
  if (input.Is(Kind::kUndefined)) return MakeList({});
  if (!input.Is(Kind::kDict)) return InvalidArgument("'items' needs a mapping");
  return CallMethod(input, "items", arguments, budget);
}

Result<Value> CaseFilter(const std::string& name, const Value& input, const Arguments& arguments,
                         Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  return ChangeCase(input, name, budget);
}

Result<Value> ReplaceIn(const std::string&, const Value& input, const Arguments& arguments,
                        Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  Arguments strings = arguments;
  for (size_t i = 0; i < std::min<size_t>(2, strings.positional.size()); ++i) {
    LATTE_ASSIGN_OR_RETURN(Text argument, Str(strings.positional[i], budget));
    strings.positional[i] = Value::String(std::move(argument));
  }
  return CallMethod(Value::String(text), "replace", strings, budget);
}

// Sorts by key; case-insensitive unless case_sensitive is set.
Result<Value> DictSort(const std::string&, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"case_sensitive", "by", "reverse"}));
  if (!input.Is(Kind::kDict)) return InvalidArgument("'dictsort' needs a mapping");
  if (Given(a[1]) && !(a[1].Is(Kind::kString) && a[1].bytes() == "key"))
    return Unsupported("'dictsort' by value is not supported");
  std::vector<std::pair<std::string, Value>> pairs;
  for (const Dict::Entry& entry : input.dict().entries) {
    Value key = Value::String(entry.key);
    LATTE_ASSIGN_OR_RETURN(Value pair, MakeList({key, entry.value}, true));
    if (!Truthy(a[0])) {
      LATTE_ASSIGN_OR_RETURN(key, ChangeCase(key, "lower", budget));
    }
    pairs.emplace_back(key.bytes(), std::move(pair));
  }
  const auto count = static_cast<int64_t>(pairs.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(16 * count, 160 * count));
  const bool down = Truthy(a[2]);
  std::stable_sort(pairs.begin(), pairs.end(), [down](const auto& x, const auto& y) {
    return down ? y.first < x.first : x.first < y.first;
  });
  Values out;
  for (auto& [key, pair] : pairs) out.push_back(std::move(pair));
  return MakeList(std::move(out));
}

// The items that map() and similar filters iterate over; none for None, false and other empty
// values.
Result<Values> ItemsOrNone(const Value& value, Budget* budget) {
  return Truthy(value) ? Items(value, budget) : Values();
}

// map(attribute="x", default=y) or map("filter", arguments…).
Result<Value> Map(const std::string&, const Value& input, const Arguments& arguments,
                  Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(Values items, ItemsOrNone(input, budget));
  Arguments rest = arguments;
  std::string filter;
  Value attribute;
  Value fallback = Value::MakeUndefined("'default' is undefined");
  if (rest.positional.empty()) {
    LATTE_ASSIGN_OR_RETURN(const Values a, Bind(rest, {"attribute", "default"}, 1));
    attribute = a[0];
    fallback = a[1];
  } else {
    if (!rest.positional[0].Is(Kind::kString)) return InvalidArgument("map() needs a filter");
    filter = rest.positional[0].bytes();
    rest.positional.erase(rest.positional.begin());
  }
  for (Value& item : items) {
    if (!filter.empty()) {
      LATTE_ASSIGN_OR_RETURN(item, ApplyFilter(filter, item, rest, budget));
      continue;
    }
    LATTE_ASSIGN_OR_RETURN(item, AttributeOf(item, attribute, budget));
    if (item.Is(Kind::kUndefined) && !fallback.Is(Kind::kUndefined)) item = fallback;
  }
  return MakeList(std::move(items));
}

// select, reject, selectattr and rejectattr: an optional attribute, then an optional test.
Result<Value> Select(const std::string& name, const Value& input, const Arguments& arguments,
                     Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values items, ItemsOrNone(input, budget));
  const bool by_attribute = name.ends_with("attr");
  Arguments rest = arguments;
  if (by_attribute && rest.positional.empty())
    return InvalidArgument(fmt::format("{} needs an attribute", name));
  const Value attribute = by_attribute ? rest.positional[0] : Value();
  if (by_attribute) rest.positional.erase(rest.positional.begin());
  std::string test;
  if (!rest.positional.empty()) {
    if (!rest.positional[0].Is(Kind::kString))
      return InvalidArgument(fmt::format("{} needs the name of a test", name));
    test = rest.positional[0].bytes();
    rest.positional.erase(rest.positional.begin());
  }
  Values out;
  for (const Value& item : items) {
    Value value = item;
    if (by_attribute) {
      LATTE_ASSIGN_OR_RETURN(value, AttributeOf(item, attribute, budget));
    }
    bool holds = Truthy(value);
    if (!test.empty()) {
      LATTE_ASSIGN_OR_RETURN(holds, ApplyTest(test, value, rest, budget));
    }
    if (holds == name.starts_with("select")) out.push_back(item);
  }
  return MakeList(std::move(out));
}

Result<Value> Absolute(const std::string&, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  if (!input.is_number()) return InvalidArgument("'abs' needs a number");
  if (input.number() >= 0) return input.Is(Kind::kBool) ? Value::Int(input.integer()) : input;
  return BinaryOperation("-", Value::Int(0), input, budget);
}

struct FilterRow {
  std::string_view name;
  Filter filter;
};

constexpr FilterRow kFilters[] = {
    {"tojson", ToJson},
    {"trim", Trim},
    {"length", LengthOf},
    {"count", LengthOf},
    {"join", Join},
    {"default", Default},
    {"d", Default},
    {"first", FirstOrLast},
    {"last", FirstOrLast},
    {"int", ToInt},
    {"float", ToFloat},
    {"string", ToString},
    {"dictsort", DictSort},
    {"list", ToList},
    {"reverse", ToList},
    {"items", DictItems},
    {"upper", CaseFilter},
    {"lower", CaseFilter},
    {"capitalize", CaseFilter},
    {"replace", ReplaceIn},
    {"map", Map},
    {"select", Select},
    {"reject", Select},
    {"selectattr", Select},
    {"rejectattr", Select},
    {"abs", Absolute},
};

}  // namespace

Result<Value> ApplyFilter(const std::string& name, const Value& input, const Arguments& arguments,
                          Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  for (const FilterRow& row : kFilters)
    if (row.name == name) return row.filter(name, input, arguments, budget);
  return Unsupported(fmt::format("the filter '{}' is not supported", name));
}

}  // namespace latte::jinja
