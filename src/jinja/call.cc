// Binding of arguments, changes of case, and the tests; see call.h.
#include "src/jinja/call.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/jinja/operators.h"

namespace latte::jinja {

Result<std::vector<Value>> Bind(const Arguments& arguments,
                                std::initializer_list<std::string_view> names, size_t required) {
  std::vector<Value> out(names.size());
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

Result<Value> ChangeCase(const Value& input, std::string_view how, Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Text text, Str(input, budget));
  LATTE_RETURN_IF_ERROR(budget->SpendString(text.size()));
  LATTE_RETURN_IF_ERROR(budget->Spend(static_cast<int64_t>(text.size()) / 64));
  std::string bytes = text.bytes();
  bool inside = false;  // after the first letter of a word, or of the text
  for (char& c : bytes) {
    if (static_cast<unsigned char>(c) >= 0x80)
      return Unsupported(fmt::format("{}() of text beyond ASCII is not supported", how));
    const bool lower = c >= 'a' && c <= 'z';
    const bool upper = c >= 'A' && c <= 'Z';
    const bool want_upper = how == "upper" || (how != "lower" && !inside);
    if (want_upper && lower) c = static_cast<char>(c - 'a' + 'A');
    if (!want_upper && upper) c = static_cast<char>(c - 'A' + 'a');
    inside = lower || upper || how == "capitalize";
  }
  Text out;
  size_t begin = 0;
  for (const Text::Run& run : text.runs()) {
    out.Append(std::string_view(bytes).substr(begin, run.end - begin), run.from_template);
    begin = run.end;
  }
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

// The operator that a comparison test stands for; empty if the test is not a comparison.
std::string_view OperatorOf(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"eq", "=="}, {"equalto", "=="}, {"ne", "!="}, {"lt", "<"},         {"lessthan", "<"},
      {"le", "<="}, {"gt", ">"},       {"ge", ">="}, {"greaterthan", ">"}};
  for (const auto& [word, op] : kNames)
    if (word == name) return op;
  return {};
}

}  // namespace

Result<bool> ApplyTest(const std::string& name, const Value& input, const Arguments& arguments,
                       Budget* budget) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  if (const std::optional<bool> is = KindTest(name, input)) {
    LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
    return *is;
  }
  const std::string_view op = OperatorOf(name);
  const bool numeric = name == "odd" || name == "even" || name == "divisibleby";
  if (op.empty() && !numeric && name != "in")
    return Unsupported(fmt::format("the test '{}' is not supported", name));
  const size_t count = name == "odd" || name == "even" ? 0 : 1;
  LATTE_ASSIGN_OR_RETURN(const std::vector<Value> a, Bind(arguments, {"other"}, count));
  if (name == "in") return Contains(a[0], input, budget);
  if (numeric) {
    const Value by = count == 0 ? Value::Int(2) : a[0];
    LATTE_ASSIGN_OR_RETURN(const Value rest, BinaryOperation("%", input, by, budget));
    return Truthy(rest) == (name == "odd");
  }
  if (op == "==" || op == "!=") {
    LATTE_ASSIGN_OR_RETURN(const bool same, Equal(input, a[0], budget));
    return same == (op == "==");
  }
  LATTE_ASSIGN_OR_RETURN(const int order, Compare(input, a[0], op));
  return op[0] == '<' ? order < 0 || (op.size() > 1 && order == 0)
                      : order > 0 || (op.size() > 1 && order == 0);
}

}  // namespace latte::jinja
