// The functions that templates may call; see call.h. Those that need the state of the rendering are
// in expressions.cc.
#include <utility>

#include <fmt/format.h>

#include "src/jinja/call.h"

namespace latte::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // Jinja2's sandbox has the same

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

// dict(a=1), dict({'a': 1}, b=2) and dict([('a', 1)]).
Result<Value> MakeDictOf(const Arguments& arguments, Budget* budget) {
  if (arguments.positional.size() > 1) return InvalidArgument("dict() takes at most one value");
  std::vector<Dict::Entry> entries;
  if (!arguments.positional.empty() && arguments.positional[0].Is(Kind::kDict)) {
    entries = arguments.positional[0].dict().entries;
  } else if (!arguments.positional.empty()) {
    LATTE_ASSIGN_OR_RETURN(const Values items, Items(arguments.positional[0], budget));
    for (const Value& item : items) {
      LATTE_ASSIGN_OR_RETURN(const Values pair, Items(item, budget));
      if (pair.size() != 2 || !IsKey(pair[0])) return InvalidArgument("dict() needs pairs");
      entries.emplace_back(pair[0], pair[1]);
    }
  }
  for (const auto& [key, value] : arguments.named) entries.emplace_back(Text(key, true), value);
  const auto count = static_cast<int64_t>(entries.size());
  LATTE_RETURN_IF_ERROR(budget->Spend(count, 160 * count));
  LATTE_RETURN_IF_ERROR(SpendKeys(entries, budget));
  return MakeDict(std::move(entries));
}

}  // namespace

Result<Value> CallFunction(const std::string& name, const Arguments& arguments, Budget* budget) {
  if (name == "range") return MakeRange(arguments, budget);
  if (name == "raise_exception") {
    LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"message"}, 1));
    LATTE_ASSIGN_OR_RETURN(const Text text, Str(a[0], budget));
    return InvalidArgument("the template refuses these messages: " + CutMessage(text.bytes()));
  }
  if (name != "dict") return Unsupported(fmt::format("the function '{}' is not supported", name));
  return MakeDictOf(arguments, budget);
}

}  // namespace latte::jinja
