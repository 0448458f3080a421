#include "src/kernels/rule_text.h"

#include "src/tensor/cache_format.h"

namespace latte {

Clause::Text Clause::Joined(const Text& a, const Text& b, Join join) {
  const auto in_brackets = [join](const Text& text) {
    const bool other = text.join != Join::kNone && text.join != join;
    return other ? fmt::format("({})", text.text) : text.text;
  };
  return {
      fmt::format("{} {} {}", in_brackets(a), join == Join::kAnd ? "and" : "or", in_brackets(b)),
      join};
}

Clause operator&&(const Clause& a, const Clause& b) {
  if (a.always() || b.never()) return b;
  if (b.always() || a.never()) return a;
  return {Clause::Joined(a.text_, b.text_, Clause::Join::kAnd),
          Clause::Joined(a.opposite_, b.opposite_, Clause::Join::kOr)};
}

Clause operator||(const Clause& a, const Clause& b) {
  if (a.never() || b.always()) return b;
  if (b.never() || a.always()) return a;
  return {Clause::Joined(a.text_, b.text_, Clause::Join::kOr),
          Clause::Joined(a.opposite_, b.opposite_, Clause::Join::kAnd)};
}

Clause operator==(const FormatName&, CacheFormat b) {
  return Compare({"cache"}, "=", "≠", std::string(Name(CacheDType{DType::kU8, b})));
}

Clause operator==(const UarchName&, Uarch b) {
  return {fmt::format("on {}", Name(b)), fmt::format("not on {}", Name(b))};
}

}  // namespace latte
