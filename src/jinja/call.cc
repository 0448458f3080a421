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
  LATTE_RETURN_IF_ERROR(budget->SpendString(text.size()));
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

std::optional<bool> KindTest(std::string_view name, const Value& value) {
  if (name == "defined") return !value.Is(Kind::kUndefined);
  if (name == "undefined") return value.Is(Kind::kUndefined);
  if (name == "none") return value.Is(Kind::kNone);
  if (name == "string") return value.Is(Kind::kString);
  if (name == "mapping") return value.Is(Kind::kDict);
  if (name == "boolean") return value.Is(Kind::kBool);
  if (name == "true") return value.Is(Kind::kBool) && value.boolean();
  if (name == "false") return value.Is(Kind::kBool) && !value.boolean();
  if (name == "integer") return value.Is(Kind::kInt);
  if (name == "float") return value.Is(Kind::kFloat);
  if (name == "number") return value.is_number();
  if (name == "callable") return value.Is(Kind::kCallable);
  const bool container = value.Is(Kind::kString) || value.Is(Kind::kList) || value.Is(Kind::kDict);
  if (name == "iterable" || name == "sequence") return container || value.Is(Kind::kUndefined);
  return {};
}

// The operator that a test stands for; empty if the test is no comparison.
std::string_view OperatorOf(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"eq", "=="}, {"equalto", "=="}, {"ne", "!="}, {"lt", "<"},          {"lessthan", "<"},
      {"le", "<="}, {"gt", ">"},       {"ge", ">="}, {"greaterthan", ">"}, {"in", "in"}};
  constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  for (const auto& [word, op] : kNames)
    if (word == name) return op;
  for (const std::string_view op : kOperators)
    if (op == name) return op;
  return {};
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

}  // namespace

Result<bool> ApplyTest(const std::string& name, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  if (const std::optional<bool> is = KindTest(name, input)) {
    LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
    return *is;
  }
  if (name == "filter" || name == "test") {
    LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
    return input.Is(Kind::kString) && (name == "filter" ? IsFilter : IsTest)(input.bytes());
  }
  if (name == "upper" || name == "lower") {
    LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
    return IsInCase(input, name, budget);
  }
  if (name == "odd" || name == "even") {
    LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
    LATTE_ASSIGN_OR_RETURN(const Value rest, BinaryOperation("%", input, Value::Int(2), budget));
    return rest.is_number() && rest.number() == (name == "odd" ? 1 : 0);
  }
  const std::string_view op = OperatorOf(name);
  const bool known = !op.empty() || name == "divisibleby" || name == "sameas";
  if (!known) return Unsupported(fmt::format("the test '{}' is not supported", name));
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"other"}, 1));
  if (name == "sameas") return IsSame(input, a[0], budget);
  if (name != "divisibleby") return Compares(op, input, a[0], budget);
  LATTE_ASSIGN_OR_RETURN(const Value rest, BinaryOperation("%", input, a[0], budget));
  return rest.is_number() && rest.number() == 0;
}

bool IsTest(std::string_view name) {
  constexpr std::string_view kOthers[] = {"filter", "test", "upper", "lower",
                                          "sameas", "odd",  "even",  "divisibleby"};
  return KindTest(name, Value()) || !OperatorOf(name).empty() ||
         std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

}  // namespace latte::jinja
