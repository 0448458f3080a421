// Rules of selection as text. A rule is one generic expression of a shape. Evaluated with numbers,
// it is a bool; with the classes here, it is its own text, and a listing cannot differ from the
// code.
//
//   const auto rule = [](const auto& s) { return s.m <= 6 && s.m * s.k <= 12288; };
//   rule(shape)    // true
//   rule(names)    // "M ≤ 6 and M·K ≤ 12288"
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/kernels/op.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/tensor/cache_format_enum.h"
#include "src/tensor/dtype.h"

namespace latte {

// The texts of a condition and of its opposite. A condition that always holds has no text.
class Clause {
 public:
  Clause(bool holds)  // NOLINT(google-explicit-constructor): a rule may be `true`
      : text_{holds ? "" : "never", Join::kNone}, opposite_{holds ? "never" : "", Join::kNone} {}
  Clause(std::string text, std::string opposite)
      : text_{std::move(text), Join::kNone}, opposite_{std::move(opposite), Join::kNone} {}

  const std::string& text() const { return text_.text; }

  friend Clause operator&&(const Clause& a, const Clause& b);
  friend Clause operator||(const Clause& a, const Clause& b);
  friend Clause operator!(const Clause& a) { return Clause(a.opposite_, a.text_); }

 private:
  enum class Join { kNone, kAnd, kOr };
  struct Text {
    std::string text;
    Join join;
  };
  Clause(Text text, Text opposite) : text_(std::move(text)), opposite_(std::move(opposite)) {}
  static Text Joined(const Text& a, const Text& b, Join join);
  bool always() const { return text_.text.empty(); }
  bool never() const { return opposite_.text.empty(); }

  Text text_, opposite_;
};

// A size, or a product of sizes: "M·K".
struct Quantity {
  std::string text;
};
inline Quantity operator*(const Quantity& a, const Quantity& b) {
  return {fmt::format("{}·{}", a.text, b.text)};
}
inline Quantity operator*(int64_t a, const Quantity& b) {
  return {fmt::format("{}·{}", a, b.text)};
}
inline Quantity RoundUp(const Quantity& a, int64_t b) {
  return {fmt::format("⌈{}/{}⌉·{}", a.text, b, b)};
}

inline Clause Compare(const Quantity& a, const char* relation, const char* opposite,
                      const std::string& b) {
  return {fmt::format("{} {} {}", a.text, relation, b),
          fmt::format("{} {} {}", a.text, opposite, b)};
}
inline Clause operator<=(const Quantity& a, int64_t b) {
  return Compare(a, "≤", ">", std::to_string(b));
}
inline Clause operator>=(const Quantity& a, int64_t b) {
  return Compare(a, "≥", "<", std::to_string(b));
}
inline Clause operator>(const Quantity& a, int64_t b) {
  return Compare(a, ">", "≤", std::to_string(b));
}
inline Clause operator==(const Quantity& a, int64_t b) {
  return Compare(a, "=", "≠", std::to_string(b));
}
inline Clause operator>=(const Quantity& a, const Quantity& b) {
  return Compare(a, "≥", "<", b.text);
}
inline Clause operator==(const Quantity& a, const Quantity& b) {
  return Compare(a, "=", "≠", b.text);
}

constexpr bool IsMultiple(int64_t a, int64_t of) { return a % of == 0; }
inline Clause IsMultiple(const Quantity& a, int64_t of) {
  return Compare({fmt::format("{} % {}", a.text, of)}, "=", "≠", "0");
}

// The type of an operand: "W".
struct TypeName {
  std::string text;
};
inline Clause operator==(const TypeName& a, DType b) {
  return Compare({a.text}, "=", "≠", std::string(Name(b)));
}
inline Clause operator!=(const TypeName& a, DType b) { return !(a == b); }

// The format of a cache.
struct FormatName {};
Clause operator==(const FormatName&, CacheFormat b);
inline Clause operator!=(const FormatName& a, CacheFormat b) { return !(a == b); }

// A micro-architecture.
struct UarchName {};
Clause operator==(const UarchName&, Uarch b);

// The names of the members of Op::Shape that rules read. kKernelTextLegend explains them.
template <class Op>
struct ShapeNames;
template <>
struct ShapeNames<GemmOp> {
  Quantity m{"M"}, n{"N"}, k{"K"}, x_group{"Gx"}, scale_group{"G"};
  TypeName w{"B"};
};
template <>
struct ShapeNames<GemmTOp> {
  Quantity m{"M"}, k{"K"}, scale_group{"G"}, scale_rows{"S"};
};
template <>
struct ShapeNames<MlaDecodeOp> {
  Quantity h{"H"}, c{"C"}, r{"R"}, page_tokens{"P"};
  FormatName kind;
};
template <>
struct ShapeNames<MhaOp> {
  Quantity v{"V"};
};

// A rule of selection from a generic expression of a shape and a micro-architecture.
template <class Op, class Expression>
constexpr KernelRule<Op> RuleOf(Expression) {
  return {[](const typename Op::Shape& s, Uarch uarch) -> bool { return Expression{}(s, uarch); },
          []() -> Clause { return Expression{}(ShapeNames<Op>(), UarchName()); }};
}

}  // namespace latte
