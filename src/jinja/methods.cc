// Methods of strings, lists and dicts, and the functions; see call.h.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/jinja/call.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // Jinja2's sandbox has the same

using Values = std::vector<Value>;
// `name` is the name of the method, for methods that share a function.
using Method = Result<Value> (*)(const Value& self, std::string_view name,
                                 const Arguments& arguments, Budget* budget);

Result<std::string> StringArgument(const Value& value, std::string_view what) {
  if (value.Is(Kind::kUndefined)) return InvalidArgument(value.undefined());
  if (!value.Is(Kind::kString))
    return InvalidArgument(fmt::format("{} must be a string, not '{}'", what, TypeName(value)));
  return value.bytes();
}

Result<int64_t> IntegerArgument(const Value& value, int64_t fallback, std::string_view what) {
  if (value.Is(Kind::kUndefined)) return fallback;
  if (!value.is_integer())
    return InvalidArgument(fmt::format("{} must be an integer, not '{}'", what, TypeName(value)));
  return value.integer();
}

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
  std::string separator;
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
  if (!Given(a[0])) return Value::String(Strip(self.text(), {}, left, right));
  LATTE_ASSIGN_OR_RETURN(const std::string chars, StringArgument(a[0], "chars"));
  LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), chars.size()));
  return Value::String(Strip(self.text(), chars, left, right));
}

Result<Value> Affix(const Value& self, std::string_view name, const Arguments& arguments, Budget*) {
  const bool at_start = name == "startswith";
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"affix"}, 1));
  const bool many = a[0].Is(Kind::kList) && a[0].list().tuple;
  for (const Value& value : many ? a[0].list().items : Values{a[0]}) {
    LATTE_ASSIGN_OR_RETURN(const std::string affix, StringArgument(value, "the text to look for"));
    if (at_start ? self.bytes().starts_with(affix) : self.bytes().ends_with(affix))
      return Value::Bool(true);
  }
  return Value::Bool(false);
}

Result<Value> ReplaceText(const Value& self, std::string_view, const Arguments& arguments,
                          Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"old", "new", "count"}, 2));
  LATTE_ASSIGN_OR_RETURN(const std::string from, StringArgument(a[0], "what replace() looks for"));
  LATTE_RETURN_IF_ERROR(StringArgument(a[1], "what replace() puts there"));
  LATTE_ASSIGN_OR_RETURN(const int64_t most, IntegerArgument(a[2], -1, "count"));
  LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), from.size()));
  const size_t size = ReplacedSize(self.text(), from, a[1].text().size(), most);
  LATTE_RETURN_IF_ERROR(budget->SpendString(size));
  LATTE_RETURN_IF_ERROR(budget->Spend(static_cast<int64_t>(self.text().size() + size) / 16));
  return Value::String(Replace(self.text(), from, a[1].text(), most));
}

Result<Value> FindText(const Value& self, std::string_view, const Arguments& arguments,
                       Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"sub"}, 1));
  LATTE_ASSIGN_OR_RETURN(const std::string what, StringArgument(a[0], "the text to look for"));
  LATTE_RETURN_IF_ERROR(budget->SpendSearch(self.text().size(), what.size()));
  const size_t at = self.bytes().find(what);
  if (at == std::string::npos) return Value::Int(-1);
  return Value::Int(CodePoints(std::string_view(self.bytes()).substr(0, at)));
}

// The value for the field of a format string between '{' and '}': empty, a number or a name.
Result<Value> FormatField(std::string_view field, const Arguments& arguments, size_t* next) {
  const auto number = [&](size_t i) -> Result<Value> {
    if (i < arguments.positional.size()) return arguments.positional[i];
    return InvalidArgument(fmt::format("format() has no argument {}", i));
  };
  if (field.empty()) return number((*next)++);
  if (field.size() < 3 && field.find_first_not_of("0123456789") == std::string_view::npos)
    return number(static_cast<size_t>(std::stoi(std::string(field))));
  for (const auto& [name, value] : arguments.named)
    if (name == field) return value;
  return Unsupported(fmt::format("the format '{{{}}}' is not supported", field));
}

Result<Value> FormatText(const Value& self, std::string_view, const Arguments& arguments,
                         Budget* budget) {
  const std::string& bytes = self.bytes();
  Text out;
  size_t next = 0;
  for (size_t at = 0; at < bytes.size();) {
    const char c = bytes[at];
    if (c != '{' && c != '}') {
      const size_t end = std::min(bytes.find_first_of("{}", at), bytes.size());
      out.AppendRange(self.text(), at, end);
      at = end;
    } else if (at + 1 < bytes.size() && bytes[at + 1] == c) {
      out.AppendRange(self.text(), at, at + 1);
      at += 2;
    } else {
      const size_t close = c == '{' ? bytes.find('}', at) : std::string::npos;
      if (close == std::string::npos) return InvalidArgument("a single brace in a format");
      const std::string_view field = std::string_view(bytes).substr(at + 1, close - at - 1);
      LATTE_ASSIGN_OR_RETURN(const Value value, FormatField(field, arguments, &next));
      LATTE_ASSIGN_OR_RETURN(const Text text, Str(value, budget));
      LATTE_RETURN_IF_ERROR(budget->SpendString(out.size() + text.size()));
      out.Append(text);
      at = close + 1;
    }
  }
  LATTE_RETURN_IF_ERROR(budget->SpendString(out.size()));
  return Value::String(std::move(out));
}

Result<Value> Lines(const Value& self, std::string_view, const Arguments& arguments,
                    Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  LATTE_RETURN_IF_ERROR(SpendParts(self, MostParts(self.bytes()), budget));
  return MakeStrings(SplitLines(self.text()));
}

Result<Value> Append(const Value& self, std::string_view, const Arguments& arguments,
                     Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(Values a, Bind(arguments, {"item"}, 1));
  List& list = self.list();
  if (list.frozen || list.tuple) return InvalidArgument("append() to a list passed in");
  // A list that contains itself would never end.
  if (a[0].Is(Kind::kList) || a[0].Is(Kind::kDict) || a[0].Is(Kind::kCallable))
    return Unsupported("append() of anything but text and numbers is not supported");
  LATTE_RETURN_IF_ERROR(budget->Spend(1, 32));
  list.items.push_back(std::move(a[0]));
  return Value();
}

Result<Value> Pop(const Value& self, std::string_view, const Arguments& arguments, Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"index"}));
  LATTE_ASSIGN_OR_RETURN(int64_t index, IntegerArgument(a[0], -1, "the index"));
  List& list = self.list();
  if (list.frozen || list.tuple) return InvalidArgument("pop() from a list passed in");
  const auto size = static_cast<int64_t>(list.items.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(1 + size / 8));
  index += index < 0 ? size : 0;
  if (index < 0 || index >= size) return InvalidArgument("pop() from beyond the list");
  Value out = list.items[static_cast<size_t>(index)];
  list.items.erase(list.items.begin() + index);
  return out;
}

Result<Value> CaseMethod(const Value& self, std::string_view name, const Arguments& arguments,
                         Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  return ChangeCase(self, name, budget);
}

Result<Value> DictParts(const Value& self, std::string_view name, const Arguments& arguments,
                        Budget* budget) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  Values out;
  const auto count = static_cast<int64_t>(self.dict().entries.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(count, 160 * count));
  for (const Dict::Entry& entry : self.dict().entries) {
    if (name == "items") {
      LATTE_ASSIGN_OR_RETURN(Value pair, MakeList({Value::String(entry.key), entry.value}, true));
      out.push_back(std::move(pair));
    } else {
      out.push_back(name == "keys" ? Value::String(entry.key) : entry.value);
    }
  }
  return MakeList(std::move(out), false, true);
}

Result<Value> GetKey(const Value& self, std::string_view, const Arguments& arguments, Budget*) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"key", "default"}, 1));
  const Value* found = a[0].Is(Kind::kString) ? self.dict().Find(a[0].bytes()) : nullptr;
  if (found) return *found;
  return arguments.positional.size() + arguments.named.size() > 1 ? a[1] : Value();
}

struct MethodRow {
  Kind kind;
  std::string_view name;
  Method method;
};

constexpr MethodRow kMethods[] = {
    {Kind::kString, "split", SplitText},
    {Kind::kString, "rsplit", SplitText},
    {Kind::kString, "strip", StripText},
    {Kind::kString, "lstrip", StripText},
    {Kind::kString, "rstrip", StripText},
    {Kind::kString, "startswith", Affix},
    {Kind::kString, "endswith", Affix},
    {Kind::kString, "replace", ReplaceText},
    {Kind::kString, "find", FindText},
    {Kind::kString, "format", FormatText},
    {Kind::kString, "splitlines", Lines},
    {Kind::kString, "upper", CaseMethod},
    {Kind::kString, "lower", CaseMethod},
    {Kind::kString, "title", CaseMethod},
    {Kind::kString, "capitalize", CaseMethod},
    {Kind::kList, "append", Append},
    {Kind::kList, "pop", Pop},
    {Kind::kDict, "get", GetKey},
    {Kind::kDict, "items", DictParts},
    {Kind::kDict, "keys", DictParts},
    {Kind::kDict, "values", DictParts},
};

const MethodRow* FindMethod(const Value& self, std::string_view name) {
  for (const MethodRow& row : kMethods)
    if (row.kind == self.kind() && row.name == name) return &row;
  return nullptr;
}

Result<Value> MakeRange(const Arguments& arguments, Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"start", "stop", "step"}, 1));
  LATTE_ASSIGN_OR_RETURN(int64_t start, IntegerArgument(a[0], 0, "range()"));
  LATTE_ASSIGN_OR_RETURN(int64_t stop, IntegerArgument(a[1], 0, "range()"));
  LATTE_ASSIGN_OR_RETURN(const int64_t step, IntegerArgument(a[2], 1, "range()"));
  if (a[1].Is(Kind::kUndefined)) stop = std::exchange(start, 0);
  if (step == 0) return InvalidArgument("range() with a step of zero");
  Values out;
  const bool up = step > 0;
  while (up ? start < stop : start > stop) {
    if (static_cast<int64_t>(out.size()) >= kMaxRange)
      return InvalidArgument(fmt::format("range() of more than {} numbers", kMaxRange));
    out.push_back(Value::Int(start));
    if (__builtin_add_overflow(start, step, &start)) break;
  }
  const auto count = static_cast<int64_t>(out.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(count, 32 * count));
  return MakeList(std::move(out), false, true);
}

}  // namespace

bool IsMethod(const Value& self, std::string_view name) {
  return FindMethod(self, name) != nullptr;
}

Result<Value> CallMethod(const Value& self, const std::string& name, const Arguments& arguments,
                         Budget* budget) {
  return FindMethod(self, name)->method(self, name, arguments, budget);
}

Result<Value> CallFunction(const std::string& name, const Arguments& arguments, Budget* budget) {
  if (name == "range") return MakeRange(arguments, budget);
  if (name == "raise_exception") {
    LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"message"}, 1));
    LATTE_ASSIGN_OR_RETURN(const Text text, Str(a[0], budget));
    return InvalidArgument("the template refuses these messages: " + text.bytes());
  }
  if (name != "dict" || !arguments.positional.empty())
    return Unsupported(
        fmt::format("the function '{}' with these arguments is not supported", name));
  std::vector<Dict::Entry> entries;
  for (const auto& [key, value] : arguments.named) entries.push_back({Text(key, true), value});
  return MakeDict(std::move(entries));
}

}  // namespace latte::jinja
