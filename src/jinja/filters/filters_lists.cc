// The filters of lists that keep their order; see filters.h.
#include <algorithm>

#include <fmt/format.h>

#include "src/jinja/filters/filters.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

Result<Value> LengthOf(const std::string&, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(const int64_t length, Length(input, budget));
  return Value::Int(length);
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
      LATTE_ASSIGN_OR_RETURN(item, AttributeOf(item, a[1], Value(), budget));
    }
    LATTE_ASSIGN_OR_RETURN(const Text text, Str(item, budget));
    const size_t added = text.size() + (i > 0 ? between.size() : 0);
    LATTE_RETURN_IF_ERROR(budget->SpendAppended(out.size(), out.size() + added));
    LATTE_RETURN_IF_ERROR(budget->SpendRuns(text.runs().size() + between.runs().size()));
    if (i > 0) out.Append(between);
    out.Append(text);
  }
  return Value::String(std::move(out));
}

Result<Value> FirstOrLast(const std::string& name, const Value& input, const Arguments& arguments,
                          Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  if (items.empty())
    return Value::MakeUndefined(fmt::format("no {} item, the sequence is empty", name));
  return name == "first" ? items.front() : items.back();
}

Result<Value> ToList(const std::string& name, const Value& input, const Arguments& arguments,
                     Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  if (name == "reverse" && input.Is(Kind::kString))
    return GetSlice(input, Value(), Value(), Value::Int(-1), budget);
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
  Value fallback;
  if (rest.positional.empty()) {
    LATTE_ASSIGN_OR_RETURN(const Values a, Bind(rest, {"attribute", "default"}, 1));
    attribute = a[0];
    fallback = a[1];
  } else {
    LATTE_ASSIGN_OR_RETURN(filter, StringArgument(rest.positional[0], "the filter of 'map'"));
    rest.positional.erase(rest.positional.begin());
  }
  for (Value& item : items) {
    if (!filter.empty()) {
      LATTE_ASSIGN_OR_RETURN(item, ApplyFilter(filter, item, rest, budget));
    } else {
      LATTE_ASSIGN_OR_RETURN(item, AttributeOf(item, attribute, fallback, budget));
    }
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
    LATTE_ASSIGN_OR_RETURN(test, StringArgument(rest.positional[0], "the name of the test"));
    rest.positional.erase(rest.positional.begin());
  }
  Values out;
  for (const Value& item : items) {
    Value value = item;
    if (by_attribute) {
      LATTE_ASSIGN_OR_RETURN(value, AttributeOf(item, attribute, Value(), budget));
    }
    bool holds = Truthy(value);
    if (!test.empty()) {
      LATTE_ASSIGN_OR_RETURN(holds, ApplyTest(test, value, rest, budget));
    }
    if (holds == name.starts_with("select")) out.push_back(item);
  }
  return MakeList(std::move(out));
}

// `count` copies of `fill` at the end of `items`. Errors: kExhausted.
Status FillUp(Values& items, const Value& fill, int64_t count, Budget* budget) {
  const int64_t most = budget->limits().total_bytes / 32;
  if (count > most) return Exhausted(fmt::format("{} more elements are too many", count));
  LATTE_RETURN_IF_ERROR(budget->Spend(count, 32 * count));
  items.insert(items.end(), static_cast<size_t>(std::max<int64_t>(count, 0)), fill);
  return {};
}

// Lists of `linecount` items each; the last one may be shorter, or filled up.
Result<Value> Batch(const std::string&, const Value& input, const Arguments& arguments,
                    Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"linecount", "fill_with"}, 1));
  LATTE_ASSIGN_OR_RETURN(const int64_t size, IntegerArgument(a[0], 0, "'batch'"));
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  LATTE_RETURN_IF_ERROR(budget->Spend(std::ssize(items), 128 * std::ssize(items)));
  Values out;
  Values line;
  const auto end_line = [&]() -> Status {
    LATTE_ASSIGN_OR_RETURN(Value list, MakeList(std::exchange(line, {})));
    out.push_back(std::move(list));
    return {};
  };
  // As in Jinja2, a size below 1 is never reached, but the line before the first item has 0 items.
  for (size_t i = 0; i < items.size(); ++i) {
    if (std::ssize(line) == size) LATTE_RETURN_IF_ERROR(end_line());
    line.push_back(items[i]);
  }
  if (line.empty()) return MakeList(std::move(out));
  if (Given(a[1])) LATTE_RETURN_IF_ERROR(FillUp(line, a[1], size - std::ssize(line), budget));
  LATTE_RETURN_IF_ERROR(end_line());
  return MakeList(std::move(out));
}

// The items in `slices` lists of about equal length.
Result<Value> Slice(const std::string&, const Value& input, const Arguments& arguments,
                    Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"slices", "fill_with"}, 1));
  LATTE_ASSIGN_OR_RETURN(const int64_t slices, IntegerArgument(a[0], 0, "'slice'"));
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(input, budget));
  if (slices == 0) return InvalidArgument("'slice' into no lists");
  if (slices > budget->limits().total_bytes / 128)
    return Exhausted(fmt::format("{} lists are too many", slices));
  LATTE_RETURN_IF_ERROR(budget->Spend(std::max<int64_t>(slices, 0),
                                      128 * std::max<int64_t>(slices, 0) + 32 * std::ssize(items)));
  const int64_t length = std::ssize(items);
  Values out;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const bool longer = i < length % slices;
    const int64_t end = begin + length / slices + (longer ? 1 : 0);
    Values part(items.begin() + begin, items.begin() + end);
    if (Given(a[1]) && !longer) part.push_back(a[1]);
    LATTE_ASSIGN_OR_RETURN(Value list, MakeList(std::move(part)));
    out.push_back(std::move(list));
    begin = end;
  }
  return MakeList(std::move(out));
}

constexpr FilterRow kListFilters[] = {
    {"length", LengthOf},   {"count", LengthOf}, {"join", Join},      {"first", FirstOrLast},
    {"last", FirstOrLast},  {"list", ToList},    {"reverse", ToList}, {"items", DictItems},
    {"map", Map},           {"select", Select},  {"reject", Select},  {"selectattr", Select},
    {"rejectattr", Select}, {"batch", Batch},    {"slice", Slice},
};

}  // namespace

std::span<const FilterRow> ListFilters() { return kListFilters; }

}  // namespace latte::jinja
