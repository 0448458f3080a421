// The texts of the kernels of gemm, which `latte inspect --kernels` shows, say what the rules of
// selection do.
#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/strings.h"
#include "src/kernels/cpu/tuning.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte::kernel_texts_test {
namespace {

constexpr DType kInputs[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kI8};
constexpr DType kWeights[] = {DType::kF32, DType::kBF16,   DType::kF16,
                              DType::kI8,  DType::kF8E4M3, DType::kU4};
constexpr int64_t kMs[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 13,
                           14, 15, 16, 17, 32, 33, 48, 95, 96, 200};
constexpr int64_t kKs[] = {512, 1024, 1152, 2048, 3072, 6144, 8192, 8320, 12288, 12416, 18432};

std::string_view TypeText(DType type) { return type == DType::kF8E4M3 ? "e4m3" : Name(type); }

// The pieces of `text` between separators.
std::vector<std::string_view> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> out;
  for (size_t at = 0; (at = text.find(separator)) != text.npos;) {
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  out.push_back(text);
  return out;
}

std::vector<std::string_view> SplitAll(const std::vector<std::string_view>& texts,
                                       std::string_view separator) {
  std::vector<std::string_view> out;
  for (const std::string_view text : texts)
    for (const std::string_view piece : Split(text, separator)) out.push_back(piece);
  return out;
}

// "bf16 × e4m3, i8"
bool TypesAre(std::string_view text, DType x, DType w) {
  const auto sides = Split(text, " × ");
  EXPECT_GE(sides.size(), 2u) << text;
  const auto has = [](std::string_view side, DType type) {
    const auto names = Split(side, ", ");
    return side == "any" || std::ranges::find(names, TypeText(type)) != names.end();
  };
  return has(sides[0], x) && has(sides[1], w);
}

bool Compare(int64_t a, std::string_view relation, int64_t b) {
  if (relation == "≤") return a <= b;
  if (relation == "≥") return a >= b;
  if (relation == ">") return a > b;
  EXPECT_EQ(relation, "=");
  return a == b;
}

// "5 ≤ M ≤ 8", "M·K ≤ 12288"
bool Relation(std::string_view text, const GemmOp::Shape& s) {
  const auto words = Split(text, " ");
  const auto value = [&](std::string_view word) -> int64_t {
    if (word == "M") return s.m;
    if (word == "K") return s.k;
    if (word == "M·K") return s.m * s.k;
    EXPECT_TRUE(IsDigits(word)) << text;
    int64_t out = -1;
    std::from_chars(word.data(), word.data() + word.size(), out);
    return out;
  };
  EXPECT_EQ(words.size() % 2, 1u) << text;
  for (size_t i = 0; i + 2 < words.size(); i += 2)
    if (!Compare(value(words[i]), words[i + 1], value(words[i + 2]))) return false;
  return true;
}

bool Term(std::string_view text, const GemmOp::Shape& s, Uarch uarch) {
  const bool many = cpu::kTunings[static_cast<size_t>(uarch)].many_dram_streams;
  const bool chunks = s.scale_group == s.k || s.scale_group % 128 == 0;
  if (text == "many DRAM streams") return many;
  if (text == "one DRAM stream") return !many;
  if (text == "not on Intel") return uarch != Uarch::kIntelBf16;
  if (text == "short scale groups") return !chunks;
  if (text == "long scale groups") return chunks;
  if (text == "one scale per row") return s.scale_group == s.k;
  if (text == "M fills 7/8 of groups of 16") return s.m * 8 >= (s.m + 15) / 16 * 16 * 7;
  if (text == "u4") return s.w == DType::kU4;
  if (text == Name(uarch)) return true;
  for (const Uarch other : kAllUarchs)
    if (text == Name(other)) return false;
  return Relation(text, s);
}

// Clauses with "; " between them hold together, alternatives with ", or " do not have to, and their
// terms do.
bool Holds(std::string_view when, const GemmOp::Shape& s, Uarch uarch) {
  if (when.empty()) return true;
  return std::ranges::all_of(Split(when, "; "), [&](std::string_view clause) {
    return std::ranges::any_of(Split(clause, ", or "), [&](std::string_view alternative) {
      return std::ranges::all_of(SplitAll(Split(alternative, ", "), " and "),
                                 [&](std::string_view term) { return Term(term, s, uarch); });
    });
  });
}

template <class F>
void ForEachShape(DType x, DType w, const F& f) {
  for (const int64_t k : kKs)
    for (const int64_t group : std::set<int64_t>{0, 32, 128, k})
      for (const int64_t m : kMs)
        f(GemmOp::Shape{1, m, 512, k, x, w, x == DType::kI8 ? 128 : 0, group});
}

template <class F>
void ForEachKernel(const F& f) {
  for (const Kernel<GemmOp>& kernel : Kernels<GemmOp>()) {
    if (kernel.isa == Isa::kRef || kernel.isa.family == IsaFamily::kCuda) continue;
    SCOPED_TRACE(kernel.name);
    f(kernel);
  }
}

TEST(KernelTexts, TypesAreThoseThatAKernelSupports) {
  ForEachKernel([](const Kernel<GemmOp>& kernel) {
    for (const DType x : kInputs)
      for (const DType w : kWeights) {
        bool supports = false;
        ForEachShape(x, w, [&](const auto& s) { supports = supports || kernel.supports(s); });
        EXPECT_EQ(TypesAre(kernel.types, x, w), supports) << TypeText(x) << " " << TypeText(w);
      }
  });
}

// Of shapes whose types and scales it supports at all.
TEST(KernelTexts, ConditionsAreTheRules) {
  ForEachKernel([](const Kernel<GemmOp>& kernel) {
    for (const DType x : kInputs)
      for (const DType w : kWeights) {
        std::set<int64_t> groups;
        ForEachShape(x, w, [&](const auto& s) {
          if (kernel.supports(s)) groups.insert(s.scale_group == s.k ? -1 : s.scale_group);
        });
        ForEachShape(x, w, [&](const GemmOp::Shape& s) {
          if (!groups.contains(s.scale_group == s.k ? -1 : s.scale_group)) return;
          for (const Uarch uarch : kAllUarchs) {
            const bool slow = kernel.is_slow != nullptr && kernel.is_slow(s, uarch);
            const bool preferred = kernel.is_preferred == nullptr || kernel.is_preferred(s, uarch);
            ASSERT_EQ(Holds(kernel.when, s, uarch), kernel.supports(s) && preferred && !slow)
                << fmt::format("M {} K {} {} {} group {} {}", s.m, s.k, TypeText(x), TypeText(w),
                               s.scale_group, Name(uarch));
          }
        });
      }
  });
}

}  // namespace
}  // namespace latte::kernel_texts_test
