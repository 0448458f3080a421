// Binding of arguments, changes of case, and the tests; see call.h.
#include "src/jinja/call.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "src/jinja/operators.h"
#include "src/text/unicode/case.h"
#include "src/text/unicode/unicode.h"

namespace latte::jinja {

Result<Values> Bind(const Arguments& arguments, std::initializer_list<std::string_view> names,
                    size_t required) {
  Values out(names.size());
  std::vector<bool> given(names.size());
  if (arguments.positional.size() > names.size())
    return InvalidArgument(fmt::format("{} arguments; at most {} are taken",
                                       arguments.positional.size(), names.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    out[i] = arguments.positional[i];
    given[i] = true;
  }
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return InvalidArgument(fmt::format("no argument is named '{}'", name));
    const auto i = static_cast<size_t>(at - names.begin());
    if (given[i]) return InvalidArgument(fmt::format("the argument '{}' is given twice", name));
    out[i] = value;
    given[i] = true;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (given[i]) continue;
    const std::string name(*(names.begin() + i));
    if (i < required) return InvalidArgument(fmt::format("the argument '{}' is missing", name));
    out[i] = Value::MakeUndefined(fmt::format("'{}' is undefined", name));
  }
  return out;
}

Result<std::string_view> StringArgument(const Value& value, std::string_view what) {
  if (value.Is(Kind::kUndefined)) return InvalidArgument(value.undefined());
  if (!value.Is(Kind::kString))
    return InvalidArgument(fmt::format("{} must be a string, not '{}'", what, TypeName(value)));
  return std::string_view(value.bytes());
}

Result<int64_t> IntegerArgument(const Value& value, int64_t fallback, std::string_view what) {
  if (value.Is(Kind::kUndefined)) return fallback;
  if (!value.is_integer())
    return InvalidArgument(fmt::format("{} must be an integer, not '{}'", what, TypeName(value)));
  return value.integer();
}

Status SpendArguments(const Arguments& arguments, Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  for (const Value& value : arguments.positional)
    LATTE_RETURN_IF_ERROR(budget->SpendOperand(value));
  for (const auto& [name, value] : arguments.named)
    LATTE_RETURN_IF_ERROR(budget->SpendOperand(value));
  return {};
}

namespace {

// Changes one character of a text after another, as `how` says; see ChangeCase.
class CaseChanger {
 public:
  explicit CaseChanger(std::string_view how) : how_(how) {}

  // `after` is the text behind the character.
  void Append(char32_t c, std::string_view after, std::string* out) {
    const bool first = !inside_ && how_ != "lower";
    if (how_ == "upper" || (first && how_ == "title filter"))
      AppendUpper(c, out);
    else if (first)
      AppendTitle(c, out);
    else if (c == 0x3A3 && cased_ && !HasCase(DecodeUtf8(after).code_point))
      AppendUtf8(0x3C2, out);  // a sigma at the end of a word has a form of its own
    else
      AppendLower(c, out);
    // Jinja2's filter lowers the rest of a word without a look at its first letter.
    cased_ = HasCase(c) && !(first && how_ == "title filter");
    const bool separates =
        IsPythonSpace(c) ||
        (c < 0x80 && kSeparators.find(static_cast<char>(c)) != std::string_view::npos);
    inside_ = how_ == "title" ? cased_ : how_ != "title filter" || !separates;
  }

 private:
  static constexpr std::string_view kSeparators = "-({[<";
  std::string_view how_;
  bool cased_ = false;   // the character before is a letter that has cases
  bool inside_ = false;  // after the first letter of a word, or of the text
};

}  // namespace

Result<Value> ChangeCase(const Value& input, std::string_view how, Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  LATTE_RETURN_IF_ERROR(budget->SpendString(text.size(), text.runs().size()));
  LATTE_RETURN_IF_ERROR(budget->Spend(static_cast<int64_t>(text.size()) / 4));
  const std::string_view bytes = text.bytes();
  CaseChanger changer(how);
  Text out;
  size_t at = 0;
  for (const Text::Run& run : text.runs()) {
    std::string changed;
    while (at < run.end) {
      const Utf8Step step = DecodeUtf8(bytes.substr(at));
      at += static_cast<size_t>(step.bytes);
      changer.Append(step.code_point, bytes.substr(at), &changed);
    }
    out.Append(changed, run.from_template);
  }
  LATTE_RETURN_IF_ERROR(budget->SpendAppended(text.size(), out.size()));
  return Value::String(std::move(out));
}

namespace {

// Tests that look at the kind of a value and not at its content.
struct KindTestRow {
  std::string_view name;
  bool (*holds)(const Value& value);
};

bool HasItems(const Value& v) {
  return v.Is(Kind::kString) || v.Is(Kind::kList) || v.Is(Kind::kDict) || v.Is(Kind::kUndefined);
}

constexpr KindTestRow kKindTests[] = {
    {"defined", [](const Value& v) { return !v.Is(Kind::kUndefined); }},
    {"undefined", [](const Value& v) { return v.Is(Kind::kUndefined); }},
    {"none", [](const Value& v) { return v.Is(Kind::kNone); }},
    {"string", [](const Value& v) { return v.Is(Kind::kString); }},
    {"mapping", [](const Value& v) { return v.Is(Kind::kDict); }},
    {"boolean", [](const Value& v) { return v.Is(Kind::kBool); }},
    {"true", [](const Value& v) { return v.Is(Kind::kBool) && v.boolean(); }},
    {"false", [](const Value& v) { return v.Is(Kind::kBool) && !v.boolean(); }},
    {"integer", [](const Value& v) { return v.Is(Kind::kInt); }},
    {"float", [](const Value& v) { return v.Is(Kind::kFloat); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"callable", [](const Value& v) { return v.Is(Kind::kCallable); }},
    {"iterable", HasItems},
    {"sequence", HasItems},
};

const KindTestRow* FindKindTest(std::string_view name) {
  for (const KindTestRow& row : kKindTests)
    if (row.name == name) return &row;
  return nullptr;
}

// Whether all letters of the text are of one case, and there are any.
Result<bool> IsInCase(const Value& input, std::string_view how, Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  LATTE_ASSIGN_OR_RETURN(const Value same, ChangeCase(Value::String(text), how, budget));
  LATTE_ASSIGN_OR_RETURN(const Value other, ChangeCase(Value::String(text),
                                                       how == "upper" ? "lower" : "upper", budget));
  return text.bytes() == same.bytes() && text.bytes() != other.bytes();
}

// Python's `is`: equal constants and short integers are one object, other values are compared.
Result<bool> IsSame(const Value& a, const Value& b, Budget* budget) {
  if (a.kind() != b.kind()) return false;
  if (a.Is(Kind::kList)) return &a.list() == &b.list();
  if (a.Is(Kind::kDict)) return &a.dict() == &b.dict();
  return Equal(a, b, budget);
}

// Whether the remainder of a division is `rest`.
Result<bool> LeavesRest(const Value& input, const Value& divisor, int64_t rest, Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Value found, BinaryOperation("%", input, divisor, budget));
  return found.is_number() && found.number() == static_cast<double>(rest);
}

// `other` is undefined for a test that takes no argument.
using ContentTest = Result<bool> (*)(const Value& input, const Value& other, Budget* budget);

struct ContentTestRow {
  std::string_view name;
  bool takes_other;
  ContentTest holds;
};

template <const char* kOp>
Result<bool> ComparesBy(const Value& input, const Value& other, Budget* budget) {
  return Compares(kOp, input, other, budget);
}
constexpr char kEq[] = "==";
constexpr char kNe[] = "!=";
constexpr char kLt[] = "<";
constexpr char kLe[] = "<=";
constexpr char kGt[] = ">";
constexpr char kGe[] = ">=";
constexpr char kIn[] = "in";

constexpr ContentTestRow kContentTests[] = {
    {"filter", false,
     [](const Value& v, const Value&, Budget*) {
       return Result<bool>(v.Is(Kind::kString) && IsFilter(v.bytes()));
     }},
    {"test", false,
     [](const Value& v, const Value&, Budget*) {
       return Result<bool>(v.Is(Kind::kString) && IsTest(v.bytes()));
     }},
    {"upper", false,
     [](const Value& v, const Value&, Budget* budget) { return IsInCase(v, "upper", budget); }},
    {"lower", false,
     [](const Value& v, const Value&, Budget* budget) { return IsInCase(v, "lower", budget); }},
    {"odd", false,
     [](const Value& v, const Value&, Budget* b) { return LeavesRest(v, Value::Int(2), 1, b); }},
    {"even", false,
     [](const Value& v, const Value&, Budget* b) { return LeavesRest(v, Value::Int(2), 0, b); }},
    {"divisibleby", true,
     [](const Value& v, const Value& other, Budget* b) { return LeavesRest(v, other, 0, b); }},
    {"sameas", true, IsSame},
    {"in", true, ComparesBy<kIn>},
    {"eq", true, ComparesBy<kEq>},
    {"equalto", true, ComparesBy<kEq>},
    {"==", true, ComparesBy<kEq>},
    {"ne", true, ComparesBy<kNe>},
    {"!=", true, ComparesBy<kNe>},
    {"lt", true, ComparesBy<kLt>},
    {"lessthan", true, ComparesBy<kLt>},
    {"<", true, ComparesBy<kLt>},
    {"le", true, ComparesBy<kLe>},
    {"<=", true, ComparesBy<kLe>},
    {"gt", true, ComparesBy<kGt>},
    {"greaterthan", true, ComparesBy<kGt>},
    {">", true, ComparesBy<kGt>},
    {"ge", true, ComparesBy<kGe>},
    {">=", true, ComparesBy<kGe>},
};

const ContentTestRow* FindContentTest(std::string_view name) {
  for (const ContentTestRow& row : kContentTests)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

Result<bool> ApplyTest(const std::string& name, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(SpendArguments(arguments, budget));
  if (const KindTestRow* const test = FindKindTest(name)) {
    LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
    return test->holds(input);
  }
  const ContentTestRow* const test = FindContentTest(name);
  if (!test) return Unsupported(fmt::format("the test '{}' is not supported", name));
  LATTE_RETURN_IF_ERROR(budget->SpendOperand(input));
  if (!test->takes_other) {
    LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
    return test->holds(input, Value(), budget);
  }
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"other"}, 1));
  return test->holds(input, a[0], budget);
}

bool IsTest(std::string_view name) { return FindKindTest(name) || FindContentTest(name); }

std::vector<std::string_view> TestNames() {
  std::vector<std::string_view> out;
  for (const KindTestRow& row : kKindTests) out.push_back(row.name);
  for (const ContentTestRow& row : kContentTests) out.push_back(row.name);
  return out;
}

}  // namespace latte::jinja
