// The filters that fit into no table of filters.h, and the search in all of them; see call.h.
#include "src/jinja/filters/filters.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/jinja/json.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

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

Result<Value> Default(const std::string&, const Value& input, const Arguments& arguments, Budget*) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"default_value", "boolean"}));
  const bool missing = input.Is(Kind::kUndefined) || (Truthy(a[1]) && !Truthy(input));
  if (!missing) return input;
  return a[0].Is(Kind::kUndefined) ? Value::String("") : a[0];
}

Result<Value> StringFilter(const std::string&, const Value& input, const Arguments& arguments,
                           Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(Text text, Str(input, budget));
  return Value::String(std::move(text));
}

// A method or a member, but no key of a dict.
Result<Value> AttributeFilter(const std::string&, const Value& input, const Arguments& arguments,
                              Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"name"}, 1));
  LATTE_ASSIGN_OR_RETURN(const std::string_view name, StringArgument(a[0], "the attribute"));
  if (input.Is(Kind::kDict) && !IsMethod(input, name))
    return Value::MakeUndefined(fmt::format("'dict object' has no attribute '{}'", name));
  return GetAttribute(input, std::string(name), budget);
}

constexpr FilterRow kOtherFilters[] = {
    {"tojson", ToJson},       {"default", Default},      {"d", Default},
    {"string", StringFilter}, {"attr", AttributeFilter},
};

// These are part of how values are printed.
constexpr std::string_view kPrintedFilters[] = {"safe", "escape", "e", "forceescape"};

std::array<std::span<const FilterRow>, 5> FilterTables() {
  return {std::span<const FilterRow>(kOtherFilters), TextFilters(), NumberFilters(), ListFilters(),
          OrderFilters()};
}

Filter FindFilter(std::string_view name) {
  for (const std::span<const FilterRow> table : FilterTables())
    for (const FilterRow& row : table)
      if (row.name == name) return row.filter;
  return nullptr;
}

}  // namespace

Result<Value> AttributeOf(const Value& item, const Value& path, const Value& fallback,
                          Budget* budget) {
  const auto part_of = [&](const Value& object, const Value& part) -> Result<Value> {
    LATTE_ASSIGN_OR_RETURN(Value value, GetItem(object, part, budget));
    return value.Is(Kind::kUndefined) && Given(fallback) ? fallback : value;
  };
  if (!path.Is(Kind::kString)) return part_of(item, path);
  if (path.text().size() > kMaxAttributeBytes)
    return InvalidArgument("the path of an attribute is too long");
  Value value = item;
  for (const Text& part : Split(path.text(), ".", -1)) {
    const std::string& name = part.bytes();
    const bool number = name.size() < 10 && IsDigits(name);
    LATTE_ASSIGN_OR_RETURN(
        value, part_of(value, number ? Value::Int(std::stoi(name)) : Value::String(part)));
  }
  return value;
}

bool IsFilter(std::string_view name) {
  return FindFilter(name) || std::find(std::begin(kPrintedFilters), std::end(kPrintedFilters),
                                       name) != std::end(kPrintedFilters);
}

std::vector<std::string_view> FilterNames() {
  std::vector<std::string_view> out(std::begin(kPrintedFilters), std::end(kPrintedFilters));
  for (const std::span<const FilterRow> table : FilterTables())
    for (const FilterRow& row : table) out.push_back(row.name);
  return out;
}

Result<Value> ApplyFilter(const std::string& name, const Value& input, const Arguments& arguments,
                          Budget* budget) {
  LATTE_RETURN_IF_ERROR(SpendArguments(arguments, budget));
  LATTE_RETURN_IF_ERROR(budget->SpendOperand(input));
  if (const Filter filter = FindFilter(name)) return filter(name, input, arguments, budget);
  if (IsFilter(name))
    return Unsupported(
        fmt::format("the filter '{}' is supported only where its result is printed", name));
  return Unsupported(fmt::format("the filter '{}' is not supported", name));
}

}  // namespace latte::jinja
