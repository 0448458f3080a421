// The texts of kernels, which `latte inspect --kernels` shows, say what selection does. The test
// reads them as a user does, and compares them with the functions that Select calls.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/strings.h"
#include "src/kernels/cpu/targets.h"
#include "src/kernels/cpu/tuning.h"
#include "src/kernels/kernel_text.h"
#include "src/kernels/registry.h"
#include "src/kernels/rule_text.h"
#include "src/tensor/cache_format.h"

namespace latte::kernel_texts_test {
namespace {

// A shape as the texts name its members.
struct Named {
  std::string_view name;
  int64_t size = 0;
  std::string_view type = "";  // of a member that is a type or a format
};
using Members = std::vector<Named>;

Members MembersOf(const GemmOp::Shape& s) {
  return {{"M", s.m},        {"N", s.n},           {"K", s.k},
          {"Gx", s.x_group}, {"G", s.scale_group}, {"B", 0, Name(s.w)}};
}
Members MembersOf(const GemmTOp::Shape& s) {
  return {{"M", s.m}, {"K", s.k}, {"G", s.scale_group}, {"S", s.scale_rows}};
}
Members MembersOf(const MlaDecodeOp::Shape& s) {
  return {{"H", s.h},
          {"C", s.c},
          {"R", s.r},
          {"P", s.page_tokens},
          {"cache", 0, Name(CacheDType{DType::kU8, s.kind})}};
}

Members MembersOf(const MhaOp::Shape&) { return {}; }

// Evaluates a text for a shape and a micro-architecture:
//   or:   and {" or " and};  and: term {" and " term};  term: "(" or ")" | condition
class Reader {
 public:
  Reader(std::string_view text, Members members, Uarch uarch)
      : rest_(text), members_(std::move(members)), uarch_(uarch) {}

  bool Holds() {
    if (rest_.empty()) return true;
    const bool out = Or();
    EXPECT_EQ(rest_, "");
    return out;
  }

 private:
  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  bool Or() {
    bool out = And();
    while (Take(" or ")) out = And() || out;
    return out;
  }
  bool And() {
    bool out = Term();
    while (Take(" and ")) out = Term() && out;
    return out;
  }
  bool Term() {
    if (!Take("(")) return Condition();
    const bool out = Or();
    EXPECT_TRUE(Take(")")) << rest_;
    return out;
  }

  bool Condition() {
    const bool many = cpu::kTunings[static_cast<size_t>(uarch_)].many_dram_streams;
    if (Take("many DRAM streams")) return many;
    if (Take("one DRAM stream")) return !many;
    const bool on = !Take("not ");
    if (Take("on ")) {
      for (const Uarch uarch : kAllUarchs)
        if (Take(Name(uarch))) return (uarch == uarch_) == on;
    }
    for (const Named& member : members_)
      if (!member.type.empty() && Take(member.name)) return TypeCondition(member.type);
    return SizeCondition();
  }

  bool TypeCondition(std::string_view type) {
    const bool equal = Take(" = ");
    EXPECT_TRUE(equal || Take(" ≠ ")) << rest_;
    const size_t end = std::min(rest_.find_first_of(" )"), rest_.size());
    const std::string_view wanted = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return (wanted == type) == equal;
  }

  bool SizeCondition() {
    int64_t a = Product();
    if (Take(" % ")) a %= Product();
    if (Take(" ≤ ")) return a <= Product();
    if (Take(" ≥ ")) return a >= Product();
    if (Take(" < ")) return a < Product();
    if (Take(" > ")) return a > Product();
    if (Take(" = ")) return a == Product();
    if (Take(" ≠ ")) return a != Product();
    ADD_FAILURE() << "no condition: " << rest_;
    rest_ = "";
    return false;
  }

  // "7·⌈M/16⌉·16"
  int64_t Product() {
    int64_t out = Factor();
    while (Take("·")) out *= Factor();
    return out;
  }
  int64_t Factor() {
    if (Take("⌈")) {
      const int64_t a = Factor();
      EXPECT_TRUE(Take("/")) << rest_;
      const int64_t b = Factor();
      EXPECT_TRUE(Take("⌉")) << rest_;
      return (a + b - 1) / b;
    }
    for (const Named& member : members_)
      if (Take(member.name)) return member.size;
    int64_t out = -1;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    EXPECT_EQ(error, std::errc()) << rest_;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return out;
  }

  std::string_view rest_;
  Members members_;
  Uarch uarch_;
};

// Kernels whose texts are rules, without the remark of kernels that have not run on hardware.
template <class Op, class F>
void ForEachKernelWithText(const F& f) {
  for (const Kernel<Op>& kernel : Kernels<Op>()) {
    if (kernel.isa.family != IsaFamily::kX86) continue;
    SCOPED_TRACE(kernel.name);
    f(kernel);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

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

// Whether a text such as "f32, bf16 × any but blocks; i8 × i8" names the product.
bool NamesTypes(std::string_view text, DType x, DType w) {
  for (const std::string_view part : Split(text, "; ")) {
    const auto sides = Split(part, " × ");
    EXPECT_EQ(sides.size(), 2u) << text;
    if (!std::ranges::count(Split(sides[0], ", "), Name(x))) continue;
    if (sides[1] == "any") return true;
    if (sides[1] == "any but blocks") return !IsBlocks(w);
    return std::ranges::count(Split(sides[1], ", "), Name(w)) > 0;
  }
  return false;
}

// takes: the texts name the types of the shape.
template <class Op>
void ExpectTextHolds(const Kernel<Op>& kernel, bool takes, const std::string& text,
                     const typename Op::Shape& shape) {
  for (const Uarch uarch : kAllUarchs) {
    const bool preferred = !kernel.is_preferred || kernel.is_preferred(shape, uarch);
    const bool slow = kernel.is_slow && kernel.is_slow(shape, uarch);
    ASSERT_EQ(takes && Reader(text, MembersOf(shape), uarch).Holds(),
              kernel.supports(shape) && preferred && !slow)
        << text << " on " << Name(uarch) << " of " << ShapeText(shape);
  }
}

constexpr DType kInputs[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8};
constexpr DType kWeights[] = {DType::kF32,    DType::kF16,        DType::kBF16, DType::kI8,
                              DType::kF8E4M3, DType::kF8E4M3Fnuz, DType::kU4,   DType::kQ4_K};

// Calls f(scale group) for weights with scales in rows of k values, and for weights without.
template <class F>
void ForEachScaleGroup(DType w, int64_t k, const F& f) {
  if (IsPlain(w) || IsBlocks(w)) return f(0);
  for (const int64_t group : {int64_t{16}, int64_t{32}, int64_t{64}, int64_t{128}, k}) f(group);
}

template <class F>
void ForEachGemmShape(DType x, DType w, const F& f) {
  for (const int64_t k : {512, 1024, 1100, 1152, 8192, 8320, 12288, 12416})
    ForEachScaleGroup(w, k, [&](int64_t group) {
      for (const int64_t m : {1, 2, 4, 5, 6, 8, 9, 12, 13, 14, 15, 16, 17, 32, 33, 95, 96, 200})
        for (const int64_t n : {5, 6, 15, 16})
          f(GemmOp::Shape{1, m, n, k, x, w, x == DType::kI8 ? 128 : 0, group});
      if (x == DType::kI8) f(GemmOp::Shape{1, 1, 512, k, x, w, 64, group});
    });
}

TEST(KernelTexts, TextsOfGemmAreTheRules) {
  ForEachKernelWithText<GemmOp>([](const Kernel<GemmOp>& kernel) {
    const std::string text = WhenText(kernel);
    const std::string types = TypesText(kernel);
    for (const DType x : kInputs)
      for (const DType w : kWeights) {
        const bool takes = NamesTypes(types, x, w);
        ForEachGemmShape(x, w,
                         [&](const GemmOp::Shape& s) { ExpectTextHolds(kernel, takes, text, s); });
        if (::testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(KernelTexts, TextsOfGemmTAreTheRules) {
  ForEachKernelWithText<GemmTOp>([](const Kernel<GemmTOp>& kernel) {
    const std::string text = WhenText(kernel);
    const std::string types = TypesText(kernel);
    for (const DType x : kInputs)
      for (const DType w : kWeights)
        for (const int64_t k : {64, 96, 128, 500, 512})
          ForEachScaleGroup(w, k, [&](int64_t group) {
            for (const int64_t m : {1, 4, 5, 64})
              for (const int64_t rows : {0, 1, 15, 16, 128})
                ExpectTextHolds(kernel, NamesTypes(types, x, w), text,
                                {1, m, 512, k, x, w, group, rows});
          });
  });
}

TEST(KernelTexts, TextsOfMlaDecodeAreTheRules) {
  ForEachKernelWithText<MlaDecodeOp>([](const Kernel<MlaDecodeOp>& kernel) {
    const std::string text = WhenText(kernel);
    const std::string types = TypesText(kernel);
    const auto caches = Split(Split(types, " × ").back(), ", ");
    for (const CacheDType& cache : CacheDTypes()) {
      const bool takes = caches.front() == "any" || std::ranges::count(caches, Name(cache)) > 0;
      for (const int64_t h : {1, 3, 4, 7, 8, 128})
        for (const int64_t c : {64, 100, 512})
          for (const int64_t r : {16, 64, 512, 576})
            for (const int64_t page_tokens : {1, 8, 16, 24, 64})
              ExpectTextHolds(kernel, takes, text,
                              {1, h, c, r, page_tokens, cache.dtype, cache.kind});
    }
  });
}

TEST(KernelTexts, TextsOfMhaAreTheRules) {
  ForEachKernelWithText<MhaOp>([](const Kernel<MhaOp>& kernel) {
    MhaOp::Shape shape = {1, 1, 1, 128, 64, 128, DType::kBF16};
    ExpectTextHolds(kernel, true, WhenText(kernel), shape);
    shape.arithmetic = DType::kF32;
    ExpectTextHolds(kernel, TypesText(kernel) == "f32", WhenText(kernel), shape);
  });
}

template <class Op>
std::string TypesOf(std::string_view name) {
  for (const Kernel<Op>& kernel : Kernels<Op>())
    if (kernel.name == name) return TypesText(kernel);
  return "no such kernel";
}

TEST(KernelTexts, TypesNameWhatAKernelMultiplies) {
  EXPECT_EQ(TypesOf<GemmOp>("ref.gemm"), "");
  EXPECT_EQ(TypesOf<GemmOp>("avx2.gemm_f32"), "f32, f16, bf16 × any; i8 × any but blocks");
  EXPECT_EQ(TypesOf<GemmOp>("avx2.gemm_f32_streams"), "f32, f16, bf16 × f32, f16, bf16");
  EXPECT_EQ(TypesOf<GemmOp>("avx2.gemm_s8_gemv"), "i8 × i8, u4");
  EXPECT_EQ(TypesOf<GemmOp>("amx.gemm_fp8_gemv"), "bf16 × f8_e4m3");
  EXPECT_EQ(TypesOf<GemmTOp>("avx2.gemm_t_f32"), "f32, f16, bf16 × any but blocks");
  EXPECT_EQ(TypesOf<GemmTOp>("avx512_vnni.gemm_t_w8"), "f16, bf16 × i8");
  EXPECT_EQ(TypesOf<MlaDecodeOp>("avx2.mla_decode"), "f32 × any");
  EXPECT_EQ(TypesOf<MlaDecodeOp>("amx.mla_decode_bf16"), "bf16 × bf16, fp8, fp8-dense, q6");
  EXPECT_EQ(TypesOf<IndexTopKOp>("avx2.index_topk"), "f32 × bf16, f16, f32, fp8");
  EXPECT_EQ(TypesOf<MhaOp>("amx.mha"), "bf16");
  EXPECT_EQ(TypesOf<GemmOp>("any.gemm"), "f32, f16, bf16, i8 × any");
  EXPECT_EQ(TypesOf<GemmTOp>("any.gemm_t"), "f32, f16, bf16 × any");
  const Kernel<GemmOp> without_one_block = {
      .isa = x86::kAvx2, .supports = [](const GemmOp::Shape& s) {
        return s.x == DType::kF32 && s.scale_group == 0 && s.w != DType::kQ4_K;
      }};
  EXPECT_EQ(TypesText(without_one_block).find("f32 × f32, f16, bf16, f8_e4m3"), 0u);
  EXPECT_NE(TypesText(without_one_block).find("q3_k, q5_k"), std::string::npos);
}

TEST(KernelTexts, GpusHaveLimitsToo) {
  const auto when = []<class Op>(std::string_view name, const Op&) {
    for (const Kernel<Op>& kernel : Kernels<Op>())
      if (kernel.name == name) return WhenText(kernel);
    return std::string("no such kernel");
  };
  EXPECT_EQ(when("any.mla_decode", MlaDecodeOp()), "C ≤ 1024; not yet run on hardware");
  EXPECT_EQ(when("any.mha", MhaOp()), "V ≤ 1024; not yet run on hardware");
  EXPECT_EQ(when("any.add", AddOp()), "not yet run on hardware");
}

TEST(KernelTexts, TilesHaveTheSidesOfMicroKernels) {
  const auto tile = []<class Op>(std::string_view name, const Op&) {
    for (const Kernel<Op>& kernel : Kernels<Op>())
      if (kernel.name == name) return kernel.tile();
    return std::string("no such kernel");
  };
  EXPECT_EQ(tile("avx2.gemm_f32", GemmOp()), "3 × 4");
  EXPECT_EQ(tile("avx2.gemm_s8_gemv", GemmOp()), "M × 8");
  EXPECT_EQ(tile("avx512_vnni.gemm_s8_bcast", GemmOp()), "16–64 × 3–12");
  EXPECT_EQ(tile("avx512_bf16.gemm_bf16_packed_3x8", GemmOp()), "3 × 8");
  EXPECT_EQ(tile("amx.gemm_bf16", GemmOp()), "16 × 64");
  EXPECT_EQ(tile("avx512.gemm_t_f32_small_m", GemmTOp()), "M × 64");
}

TEST(KernelTexts, NegationsAndBracketsKeepTheMeaning) {
  const Quantity m{"M"};
  const Quantity k{"K"};
  EXPECT_EQ((m <= 6 && m * k <= 12288).text(), "M ≤ 6 and M·K ≤ 12288");
  EXPECT_EQ((!(m <= 6 && k > 2)).text(), "M > 6 or K ≤ 2");
  EXPECT_EQ(((m == 1 || k >= 2) && !(m == k)).text(), "(M = 1 or K ≥ 2) and M ≠ K");
  EXPECT_EQ((!!(m == 1 || (k > 2 && m > 3))).text(), "M = 1 or (K > 2 and M > 3)");
  EXPECT_EQ((!((m == 1 || k > 2) && m > 3)).text(), "(M ≠ 1 and K ≤ 2) or M ≤ 3");
  EXPECT_EQ((Clause(true) && m == 1).text(), "M = 1");
  EXPECT_EQ((m == 1 && Clause(true)).text(), "M = 1");
  EXPECT_EQ((m == 1 || Clause(true)).text(), "");
  EXPECT_EQ(Clause(true).text(), "");
  EXPECT_EQ((Clause(false) || m == 1).text(), "M = 1");
  EXPECT_EQ((!(Clause(false) || m == 1)).text(), "M ≠ 1");
  EXPECT_EQ((m == 1 && Clause(false)).text(), "never");
  EXPECT_EQ((!(m == 1 && Clause(false))).text(), "");
}

}  // namespace
}  // namespace latte::kernel_texts_test
