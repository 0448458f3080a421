// The methods of strings; see call.h.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/jinja/format/text_format.h"
#include "src/jinja/methods.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

// Each part costs about as much as a small string.
Status SpendParts(const Value& self, size_t parts, Budget* budget) {
  const auto size = static_cast<int64_t>(self.text().size());
  const auto count = static_cast<int64_t>(parts);
  return budget->Spend(1 + size / 64 + count, size + 128 * count);
}

Result<Value> SplitText(const Value& self, std::string_view name, const Arguments& arguments,
                        Budget* budget) {
  const bool right = name == "rsplit";
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"sep", "maxsplit"}));
  LATTE_ASSIGN_OR_RETURN(const int64_t most, IntegerArgument(a[1], -1, "maxsplit"));
  std::string_view separator;
  size_t parts = 0;
  if (Given(a[0])) {
    LATTE_ASSIGN_OR_RETURN(separator, StringArgument(a[0], "the separator"));
    if (separator.empty()) return InvalidArgument("empty separator");
    LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), separator.size()));
    parts = CountParts(self.bytes(), separator);
    if (most >= 0) parts = std::min(parts, static_cast<size_t>(most) + 1);
  } else {
    if (right && most >= 0) return Unsupported("rsplit() at spaces with a limit is not supported");
    parts = MostParts(self.bytes());
  }
  LATTE_RETURN_IF_ERROR(SpendParts(self, parts, budget));
  if (separator.empty()) return MakeStrings(SplitAtSpaces(self.text(), most));
  return MakeStrings(right ? SplitFromRight(self.text(), separator, most)
                           : Split(self.text(), separator, most));
}

Result<Value> StripText(const Value& self, std::string_view name, const Arguments& arguments,
                        Budget* budget) {
  const bool left = name != "rstrip";
  const bool right = name != "lstrip";
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"chars"}));
  LATTE_RETURN_IF_ERROR(budget->SpendString(self.text().size()));
  std::optional<std::string_view> chars;
  if (Given(a[0])) {
    LATTE_ASSIGN_OR_RETURN(chars, StringArgument(a[0], "chars"));
    LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), chars->size()));
  }
  Text out = Strip(self.text(), chars, left, right);
  LATTE_RETURN_IF_ERROR(budget->Spend(static_cast<int64_t>(self.text().size() - out.size()) / 16));
  return Value::String(std::move(out));
}

Result<Value> Affix(const Value& self, std::string_view name, const Arguments& arguments,
                    Budget* budget) {
  const bool at_start = name == "startswith";
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"affix"}, 1));
  const bool many = a[0].Is(Kind::kList) && a[0].list().tuple;
  const std::span<const Value> affixes = many ? std::span<const Value>(a[0].list().items) : a;
  for (const Value& value : affixes) {
    LATTE_RETURN_IF_ERROR(budget->Spend(1));
    LATTE_RETURN_IF_ERROR(budget->SpendOperand(value));
    LATTE_ASSIGN_OR_RETURN(const std::string_view affix,
                           StringArgument(value, "the text to look for"));
    if (at_start ? self.bytes().starts_with(affix) : self.bytes().ends_with(affix))
      return Value::Bool(true);
  }
  return Value::Bool(false);
}

Result<Value> ReplaceText(const Value& self, std::string_view, const Arguments& arguments,
                          Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"old", "new", "count"}, 2));
  LATTE_ASSIGN_OR_RETURN(const std::string_view from,
                         StringArgument(a[0], "what replace() looks for"));
  LATTE_RETURN_IF_ERROR(StringArgument(a[1], "what replace() puts there"));
  LATTE_ASSIGN_OR_RETURN(const int64_t most, IntegerArgument(a[2], -1, "count"));
  LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), from.size()));
  const size_t matches = CountMatches(self.bytes(), from, most);
  const size_t size = self.text().size() + matches * a[1].text().size() - matches * from.size();
  LATTE_RETURN_IF_ERROR(budget->SpendString(
      size, self.text().runs().size() + matches * (1 + a[1].text().runs().size())));
  LATTE_RETURN_IF_ERROR(budget->Spend(static_cast<int64_t>(self.text().size() + size) / 16));
  return Value::String(Replace(self.text(), from, a[1].text(), most));
}

// find, rfind, index, rindex and count: of a text between two characters of the string.
Result<Value> FindText(const Value& self, std::string_view name, const Arguments& arguments,
                       Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"sub", "start", "end"}, 1));
  LATTE_ASSIGN_OR_RETURN(const std::string_view what, StringArgument(a[0], "the text to look for"));
  LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), what.size()));
  const std::string& bytes = self.bytes();
  const int64_t length = CodePoints(bytes);
  const auto bound = [&](const Value& value, int64_t fallback) -> Result<int64_t> {
    if (!Given(value)) return fallback;
    LATTE_ASSIGN_OR_RETURN(const int64_t i, IntegerArgument(value, fallback, "the bound"));
    return std::max<int64_t>(i < 0 ? i + length : i, 0);
  };
  LATTE_ASSIGN_OR_RETURN(const int64_t start, bound(a[1], 0));
  LATTE_ASSIGN_OR_RETURN(const int64_t limit, bound(a[2], length));
  const int64_t stop = std::min(limit, length);
  const bool count = name == "count";
  int64_t found = count ? 0 : -1;
  if (start <= stop) {
    const std::string_view tail = std::string_view(bytes).substr(CodePointOffset(bytes, start));
    const std::string_view part = tail.substr(0, CodePointOffset(tail, stop - start));
    if (count) return Value::Int(static_cast<int64_t>(CountParts(part, what)) - 1);
    const size_t at = name.starts_with('r') ? part.rfind(what) : part.find(what);
    if (at != std::string_view::npos) found = start + CodePoints(part.substr(0, at));
  }
  if (found < 0 && name.ends_with("index")) return InvalidArgument("the text is not found");
  return Value::Int(found);
}

Result<Value> FormatText(const Value& self, std::string_view, const Arguments& arguments,
                         Budget* budget) {
  return FormatBraces(self.text(), arguments, budget);
}

// partition and rpartition: the text before the separator, the separator, and the text after it.
Result<Value> PartitionText(const Value& self, std::string_view name, const Arguments& arguments,
                            Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"sep"}, 1));
  LATTE_ASSIGN_OR_RETURN(const std::string_view what, StringArgument(a[0], "the separator"));
  if (what.empty()) return InvalidArgument("empty separator");
  LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), what.size()));
  LATTE_RETURN_IF_ERROR(budget->SpendString(self.text().size()));
  const bool right = name == "rpartition";
  const size_t at = right ? self.bytes().rfind(what) : self.bytes().find(what);
  const bool found = at != std::string::npos;
  const Value empty = Value::String("");
  if (!found)
    return MakeList(right ? Values{empty, empty, self} : Values{self, empty, empty}, true);
  const Text& text = self.text();
  return MakeList(
      {Value::String(text.Slice(0, at)), Value::String(text.Slice(at, at + what.size())),
       Value::String(text.Slice(at + what.size(), text.size()))},
      true);
}

Result<Value> RemoveAffix(const Value& self, std::string_view name, const Arguments& arguments,
                          Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"affix"}, 1));
  LATTE_ASSIGN_OR_RETURN(const std::string_view affix, StringArgument(a[0], "the text to remove"));
  LATTE_RETURN_IF_ERROR(budget->SpendString(self.text().size()));
  const Text& text = self.text();
  if (name == "removeprefix" && text.bytes().starts_with(affix))
    return Value::String(text.Slice(affix.size(), text.size()));
  if (name == "removesuffix" && text.bytes().ends_with(affix))
    return Value::String(text.Slice(0, text.size() - affix.size()));
  return self;
}

Result<Value> JoinTexts(const Value& self, std::string_view, const Arguments& arguments,
                        Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"items"}, 1));
  LATTE_ASSIGN_OR_RETURN(const Values items, Items(a[0], budget));
  for (const Value& item : items)
    if (!item.Is(Kind::kString))
      return InvalidArgument(fmt::format("join() needs strings, not '{}'", TypeName(item)));
  return ApplyFilter("join", a[0], {.positional = {self}, .named = {}}, budget);
}

// center, ljust and rjust, and zfill, which puts zeros after a sign.
Result<Value> PadText(const Value& self, std::string_view name, const Arguments& arguments,
                      Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"width", "fillchar"}, 1));
  LATTE_ASSIGN_OR_RETURN(const int64_t width, IntegerArgument(a[0], 0, "the width"));
  std::string_view fill = " ";
  if (Given(a[1])) {
    LATTE_ASSIGN_OR_RETURN(fill, StringArgument(a[1], "the character to fill with"));
  }
  if (CodePoints(fill) != 1) return InvalidArgument("the text to fill with is one character");
  const Text& text = self.text();
  if (name != "zfill") {
    const Side side = name == "ljust"   ? Side::kLeft
                      : name == "rjust" ? Side::kRight
                                        : Side::kCenter;
    return Padded(text, width, side, fill, budget);
  }
  const size_t sign = text.bytes().starts_with('+') || text.bytes().starts_with('-') ? 1 : 0;
  LATTE_ASSIGN_OR_RETURN(
      const Value digits,
      Padded(text.Slice(sign, text.size()),
             std::max(width, int64_t{0}) - static_cast<int64_t>(sign), Side::kRight, "0", budget));
  Text out = text.Slice(0, sign);
  out.Append(digits.text());
  return Value::String(std::move(out));
}

// isalpha and its relatives, which need Unicode tables beyond ASCII.
Result<Value> IsOfClass(const Value& self, std::string_view name, const Arguments& arguments,
                        Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_RETURN_IF_ERROR(budget->Spend(1 + static_cast<int64_t>(self.text().size()) / 64));
  const std::string& bytes = self.bytes();
  if (name == "isspace")
    return Value::Bool(!bytes.empty() && Strip(self.text(), {}, true, false).empty());
  const bool digits = name != "isalpha";
  const bool letters = name == "isalpha" || name == "isalnum";
  for (const char c : bytes) {
    if (static_cast<unsigned char>(c) >= 0x80)
      return Unsupported(fmt::format("{}() of text beyond ASCII is not supported", name));
    const bool digit = IsDigit(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!(digit && digits) && !(letter && letters)) return Value::Bool(false);
  }
  return Value::Bool(!bytes.empty());
}

Result<Value> IsOfCase(const Value& self, std::string_view name, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_ASSIGN_OR_RETURN(const bool is,
                         ApplyTest(name == "isupper" ? "upper" : "lower", self, {}, budget));
  return Value::Bool(is);
}

Result<Value> Lines(const Value& self, std::string_view, const Arguments& arguments,
                    Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_RETURN_IF_ERROR(SpendParts(self, MostParts(self.bytes()), budget));
  return MakeStrings(SplitLines(self.text()));
}

Result<Value> CaseMethod(const Value& self, std::string_view name, const Arguments& arguments,
                         Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  return ChangeCase(self, name, budget);
}

constexpr MethodRow kTextMethods[] = {
    {Kind::kString, "split", SplitText},
    {Kind::kString, "rsplit", SplitText},
    {Kind::kString, "strip", StripText},
    {Kind::kString, "lstrip", StripText},
    {Kind::kString, "rstrip", StripText},
    {Kind::kString, "startswith", Affix},
    {Kind::kString, "endswith", Affix},
    {Kind::kString, "removeprefix", RemoveAffix},
    {Kind::kString, "removesuffix", RemoveAffix},
    {Kind::kString, "replace", ReplaceText},
    {Kind::kString, "find", FindText},
    {Kind::kString, "rfind", FindText},
    {Kind::kString, "index", FindText},
    {Kind::kString, "rindex", FindText},
    {Kind::kString, "count", FindText},
    {Kind::kString, "partition", PartitionText},
    {Kind::kString, "rpartition", PartitionText},
    {Kind::kString, "join", JoinTexts},
    {Kind::kString, "format", FormatText},
    {Kind::kString, "splitlines", Lines},
    {Kind::kString, "center", PadText},
    {Kind::kString, "ljust", PadText},
    {Kind::kString, "rjust", PadText},
    {Kind::kString, "zfill", PadText},
    {Kind::kString, "upper", CaseMethod},
    {Kind::kString, "lower", CaseMethod},
    {Kind::kString, "title", CaseMethod},
    {Kind::kString, "capitalize", CaseMethod},
    {Kind::kString, "isupper", IsOfCase},
    {Kind::kString, "islower", IsOfCase},
    {Kind::kString, "isspace", IsOfClass},
    {Kind::kString, "isdigit", IsOfClass},
    {Kind::kString, "isdecimal", IsOfClass},
    {Kind::kString, "isnumeric", IsOfClass},
    {Kind::kString, "isalpha", IsOfClass},
    {Kind::kString, "isalnum", IsOfClass},
};

}  // namespace

std::span<const MethodRow> TextMethods() { return kTextMethods; }

}  // namespace latte::jinja
