// The filters of text; see filters.h.
#include <algorithm>

#include <fmt/format.h>

#include "src/jinja/filters/filters.h"
#include "src/jinja/format/text_format.h"

namespace latte::jinja {
namespace {

Result<Value> Trim(const std::string&, const Value& input, const Arguments& arguments,
                   Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  return CallMethod(Value::String(text), "strip", arguments, budget);
}

Result<Value> CaseFilter(const std::string& name, const Value& input, const Arguments& arguments,
                         Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  // Jinja2 and Python have different words: the filter keeps an apostrophe inside of one.
  return ChangeCase(input, name == "title" ? "title filter" : name, budget);
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

// The text in front of each line: `width` spaces, or a text.
Result<Text> Indentation(const Value& width, Budget* budget) {
  if (width.Is(Kind::kString)) return width.text();
  LATTE_ASSIGN_OR_RETURN(const int64_t spaces, IntegerArgument(width, 4, "the width of 'indent'"));
  if (spaces > budget->limits().string_bytes)
    return Exhausted(fmt::format("an indentation of {} spaces is too wide", spaces));
  LATTE_RETURN_IF_ERROR(budget->SpendString(static_cast<size_t>(std::max<int64_t>(spaces, 0))));
  return Text(std::string(static_cast<size_t>(std::max<int64_t>(spaces, 0)), ' '), true);
}

Result<Value> Indent(const std::string&, const Value& input, const Arguments& arguments,
                     Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"width", "first", "blank"}));
  LATTE_RETURN_IF_ERROR(StringArgument(input, "the input of 'indent'"));
  LATTE_ASSIGN_OR_RETURN(const Text before, Indentation(a[0], budget));
  const auto parts = static_cast<int64_t>(MostParts(input.bytes()));
  LATTE_RETURN_IF_ERROR(
      budget->Spend(parts + static_cast<int64_t>(input.text().size()) / 64, 128 * parts));
  Text text = input.text();
  text.Append("\n", true);  // so that a final newline ends an empty line
  const std::vector<Text> lines = SplitLines(text);
  const bool blank = Truthy(a[2]);
  size_t size = before.size();
  for (const Text& line : lines)
    size += line.size() + 1 + (line.empty() && !blank ? 0 : before.size());
  LATTE_RETURN_IF_ERROR(
      budget->SpendString(size, text.runs().size() + lines.size() * (1 + before.runs().size())));
  LATTE_RETURN_IF_ERROR(budget->Spend(std::ssize(lines)));
  Text out = Truthy(a[1]) ? before : Text();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.Append("\n", true);
    if (i > 0 && (blank || !lines[i].empty())) out.Append(before);
    out.Append(lines[i]);
  }
  return Value::String(std::move(out));
}

Result<Value> Center(const std::string&, const Value& input, const Arguments& arguments,
                     Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"width"}));
  LATTE_ASSIGN_OR_RETURN(const int64_t width, IntegerArgument(a[0], 80, "the width"));
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  return Padded(text, width, Side::kCenter, " ", budget);
}

// Cuts a text that is longer than `length` and five characters more, at a space if there is one.
Result<Value> Truncate(const std::string&, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"length", "killwords", "end", "leeway"}));
  LATTE_ASSIGN_OR_RETURN(const int64_t length, IntegerArgument(a[0], 255, "the length"));
  LATTE_ASSIGN_OR_RETURN(const int64_t leeway,
                         Given(a[3]) ? IntegerArgument(a[3], 5, "the leeway") : int64_t{5});
  const Value end = a[2].Is(Kind::kUndefined) ? Value::String("...") : a[2];
  if (input.Is(Kind::kUndefined)) return input;
  LATTE_RETURN_IF_ERROR(StringArgument(input, "the input of 'truncate'"));
  LATTE_RETURN_IF_ERROR(StringArgument(end, "the end of 'truncate'"));
  LATTE_RETURN_IF_ERROR(budget->SpendString(input.text().size() + end.text().size()));
  const int64_t kept = length - CodePoints(end.bytes());
  if (kept < 0 || leeway < 0)
    return InvalidArgument("'truncate' needs room for its end, and a leeway that is not negative");
  const int64_t size = CodePoints(input.bytes());
  if (size - leeway <= length) return input;
  Text out = input.text().Slice(0, CodePointOffset(input.bytes(), kept));
  const size_t space = out.bytes().rfind(' ');
  if (!Truthy(a[1]) && space != std::string::npos) out = out.Slice(0, space);
  out.Append(end.text());
  return Value::String(std::move(out));
}

// '%s of %s' | format(a, b)
Result<Value> FormatFilter(const std::string&, const Value& input, const Arguments& arguments,
                           Budget* budget) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    return InvalidArgument("'format' takes values, or named values");
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  if (arguments.named.empty()) {
    LATTE_ASSIGN_OR_RETURN(const Value values, MakeList(arguments.positional, true));
    return FormatPercent(text, values, budget);
  }
  LATTE_ASSIGN_OR_RETURN(
      const Value named,
      CallFunction("dict", {.positional = {}, .named = arguments.named}, budget));
  return FormatPercent(text, named, budget);
}

constexpr FilterRow kTextFilters[] = {
    {"trim", Trim},         {"upper", CaseFilter},
    {"lower", CaseFilter},  {"capitalize", CaseFilter},
    {"title", CaseFilter},  {"replace", ReplaceIn},
    {"indent", Indent},     {"center", Center},
    {"truncate", Truncate}, {"format", FormatFilter},
};

}  // namespace

std::span<const FilterRow> TextFilters() { return kTextFilters; }

}  // namespace latte::jinja
