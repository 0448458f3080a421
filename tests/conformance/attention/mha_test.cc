// Compares mha with the reference: values, bits, and keys that must not be read.
#include <gtest/gtest.h>

#include "tests/conformance/support/attention_case.h"
#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::mha_test {
namespace {

using OpKernel = Kernel<MhaOp>;

// Kernels of these instruction sets round their inputs to bf16.
bool MultipliesBF16(const OpKernel& kernel) { return kernel.isa.Includes(x86::kAvx512Bf16); }

DType ArithmeticOf(const OpKernel& kernel) {
  return MultipliesBF16(kernel) ? DType::kBF16 : DType::kF32;
}

// The bound for token t and head h, for keys and values between −1 and 1.
AttentionBound BoundOf(const OpKernel& kernel, const MhaCase& c, const MhaShape& s, int64_t t,
                       int64_t h, double lse) {
  double sum = 0;
  for (const TensorView& q : {c.q_nope.view(), c.q_rope.view()})
    for (int64_t i = 0; i < q.shape[2]; ++i)
      sum += std::abs(static_cast<double>(GetValue(q, t, h, i)));
  const double unit = MultipliesBF16(kernel) ? kBF16Unit : 0;
  const double scores = sum * std::abs(static_cast<double>(c.scale)) * (1 + unit);
  return BoundAttention(s.n + s.r, c.Visible(t), scores, lse, unit);
}

// The first `rows` rows of a tensor, rounded to bf16.
Tensor Rounded(const TensorView& x, int64_t rows) {
  Tensor out(DType::kF32, {rows, x.shape[1], x.shape[2]});
  float* to = out.Ptr<float>();
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < x.shape[1]; ++h)
      for (int64_t i = 0; i < x.shape[2]; ++i, ++to) *to = RoundToBF16(GetValue(x, t, h, i));
  return out;
}

// The reference's outputs for a case, or for its inputs rounded to bf16.
struct Expected {
  Expected(const MhaCase& c, const MhaShape& s, bool round)
      : o(DType::kF32, {s.queries, s.heads, s.v}), lse(DType::kF32, {s.queries, s.heads}) {
    MhaOp::Params p = c.Params();
    std::vector<Tensor> rounded;
    if (round) {
      const int64_t keys = c.Visible(s.queries - 1);
      for (TensorView* x : {&p.q_nope, &p.q_rope, &p.k_nope, &p.k_rope, &p.v}) {
        const bool query = x == &p.q_nope || x == &p.q_rope;
        rounded.push_back(Rounded(*x, query ? s.queries : keys));
        *x = rounded.back();
        if (!query) x->shape[0] = s.keys;
      }
    }
    p.o = o;
    p.lse = lse;
    RunRef<MhaOp>(p);
  }

  Tensor o, lse;
};

void ExpectSameBitsHoweverCut(const OpKernel& kernel, MhaCase& c, const MhaShape& s) {
  Tensor o(DType::kF32, {s.queries, s.heads, s.v});
  Tensor lse(DType::kF32, {s.queries, s.heads});
  MhaOp::Params whole = c.Params();
  whole.o = o;
  whole.lse = lse;
  RunKernel(kernel, whole);
  for (const int threads : ThreadCounts(kernel)) {
    c.PoisonOutputs();
    RunKernel(kernel, c.Params(), threads);
    ASSERT_TRUE(SameBits(c.o, o)) << threads << " threads";
    ASSERT_TRUE(SameBits(c.lse, lse)) << threads << " threads, lse";
  }
  for (const int64_t chunk : {1, 7}) {
    c.PoisonOutputs();
    for (int64_t begin = 0; begin < s.queries; begin += chunk) {
      const int64_t end = std::min(s.queries, begin + chunk);
      MhaOp::Params p = c.Params();
      for (TensorView* t : {&p.q_nope, &p.q_rope, &p.o, &p.lse}) *t = t->Slice(0, begin, end);
      p.q_begin += begin;
      // Keys after the last query of the chunk are removed.
      for (TensorView* t : {&p.k_nope, &p.k_rope, &p.v}) *t = t->Slice(0, 0, c.Visible(end - 1));
      RunKernel(kernel, p, 2);
    }
    ASSERT_TRUE(SameBits(c.o, o)) << "chunks of " << chunk;
    ASSERT_TRUE(SameBits(c.lse, lse)) << "chunks of " << chunk << ", lse";
  }
}

// Sets the last key that any query attends to to NaN; the other queries must not change.
void ExpectFutureKeysDoNotMatter(const OpKernel& kernel, MhaCase& c, const MhaShape& s) {
  const int64_t keys = c.Visible(s.queries - 1);
  if (keys == 0) return;
  RunKernel(kernel, c.Params());
  const std::vector<std::byte> before = c.o.Bytes();
  const TensorView key = c.kv.view().Slice(0, keys - 1, keys);
  const std::vector<std::byte> saved(key.data, key.data + key.elements() * 4);
  std::memset(key.data, 0xff, saved.size());
  RunKernel(kernel, c.Params());
  const auto row_bytes = static_cast<size_t>(s.heads * s.v) * 4;
  for (int64_t t = 0; t < s.queries; ++t) {
    const size_t at = static_cast<size_t>(t) * row_bytes;
    const bool same = std::memcmp(c.o.view().data + at, before.data() + at, row_bytes) == 0;
    ASSERT_EQ(same, c.Visible(t) < keys) << "query " << t;
  }
  std::memcpy(key.data, saved.data(), saved.size());
}

TEST(MhaConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(7);
  for (const MhaShape& s : MhaShapes()) {
    SCOPED_TRACE(fmt::format("T={} S={} H={} N={} R={} V={} queries from {}, keys from {}",
                             s.queries, s.keys, s.heads, s.n, s.r, s.v, s.q_begin, s.key_begin));
    MhaCase c(s, rng);
    const Expected exact(c, s, false);
    const Expected rounded(c, s, true);
    ForEachKernel<MhaOp>([&](const OpKernel& kernel) {
      c.arithmetic = ArithmeticOf(kernel);
      if (kernel.isa == Isa::kRef || !kernel.supports(MhaOp::ShapeOf(c.Params()))) return;
      const Expected& want = MultipliesBF16(kernel) ? rounded : exact;
      c.PoisonOutputs();
      RunKernel(kernel, c.Params(), 2);
      ASSERT_TRUE(Close(c.o, want.o, [&](int64_t t, int64_t h, int64_t) {
        return BoundOf(kernel, c, s, t, h, 0).o;
      }));
      ASSERT_TRUE(Close(c.lse, want.lse, [&](int64_t t, int64_t h, int64_t) {
        return BoundOf(kernel, c, s, t, h, static_cast<double>(GetValue(want.lse, t, h))).lse;
      }));
      ExpectSameBitsHoweverCut(kernel, c, s);
      ExpectFutureKeysDoNotMatter(kernel, c, s);
    });
    if (HasFatalFailure()) return;
  }
}

// Maxima that rise from block to block, by small and by large steps.
TEST(MhaConformance, RisingMaxima) {
  std::mt19937 rng(9);
  for (const MhaShape& s : {MhaShape{20, 620, 2, 24, 8, 33, 600, 0, true},
                            MhaShape{35, 300, 1, 128, 64, 128, 265, 0, true}})
    for (const float scale : {6.0f, 1.0f, 0.1f, 1e-6f}) {
      SCOPED_TRACE(fmt::format("N={} scale {}", s.n, scale));
      MhaCase c(s, rng);
      c.scale = scale;
      // Keys grow with their position.
      const TensorView kv = c.kv;
      for (int64_t key = 0; key < kv.shape[0]; ++key)
        for (int64_t i = 0; i < s.heads * (s.n + s.v); ++i)
          kv.Row<float>(key)[i] *= static_cast<float>(key + 1) / static_cast<float>(kv.shape[0]);
      const Expected exact(c, s, false);
      const Expected rounded(c, s, true);
      ForEachKernel<MhaOp>([&](const OpKernel& kernel) {
        c.arithmetic = ArithmeticOf(kernel);
        if (kernel.isa == Isa::kRef || !kernel.supports(MhaOp::ShapeOf(c.Params()))) return;
        const Expected& want = MultipliesBF16(kernel) ? rounded : exact;
        c.PoisonOutputs();
        RunKernel(kernel, c.Params(), 2);
        ASSERT_TRUE(Close(c.o, want.o, [&](int64_t t, int64_t h, int64_t) {
          return BoundOf(kernel, c, s, t, h, 0).o;
        }));
        ASSERT_TRUE(Close(c.lse, want.lse, [&](int64_t t, int64_t h, int64_t) {
          return BoundOf(kernel, c, s, t, h, static_cast<double>(GetValue(want.lse, t, h))).lse;
        }));
        ExpectSameBitsHoweverCut(kernel, c, s);
      });
      if (HasFatalFailure()) return;
    }
}

// Values that a query does not attend to must not change its bytes, whatever they are.
TEST(MhaConformance, UnseenValuesDoNotMatter) {
  std::mt19937 rng(10);
  const MhaShape s = {50, 300, 1, 32, 32, 48, 250, 0, true};
  for (const float value : {std::numeric_limits<float>::infinity(), -3e38f}) {
    for (const int64_t key : {251, 263, 266, 287}) {
      MhaCase c(s, rng);
      ForEachKernel<MhaOp>([&](const OpKernel& kernel) {
        c.arithmetic = ArithmeticOf(kernel);
        RunKernel(kernel, c.Params());
        const std::vector<std::byte> before = c.o.Bytes();
        float& at = c.kv.view().Row<float>(key)[s.n + 17];
        const float saved = std::exchange(at, value);
        RunKernel(kernel, c.Params());
        at = saved;
        const auto row_bytes = static_cast<size_t>(s.heads * s.v) * 4;
        for (int64_t t = 0; t < s.queries; ++t) {
          const size_t place = static_cast<size_t>(t) * row_bytes;
          const bool same =
              std::memcmp(c.o.view().data + place, before.data() + place, row_bytes) == 0;
          ASSERT_EQ(same, c.Visible(t) <= key) << "key " << key << ", query " << t;
        }
      });
      if (HasFatalFailure()) return;
    }
  }
}

// Keys split at any multiple of 64 and at 40, merged by lse, agree with a single pass. Chunked
// prompts rely on this.
TEST(MhaConformance, PartsOfTheKeysMergeToTheWhole) {
  std::mt19937 rng(8);
  const MhaShape s = {20, 300, 2, 24, 8, 33, 280, 0, true};
  MhaCase c(s, rng);
  ForEachKernel<MhaOp>([&](const OpKernel& kernel) {
    c.arithmetic = ArithmeticOf(kernel);
    RunKernel(kernel, c.Params());
    for (const int64_t cut : {40, 64, 129, 192, 290}) {
      Tensor o(DType::kF32, {20, 2, 33});
      Tensor lse(DType::kF32, {20, 2});
      Tensor o_b(DType::kF32, {20, 2, 33});
      Tensor lse_b(DType::kF32, {20, 2});
      for (const bool second : {false, true}) {
        MhaOp::Params p = c.Params();
        for (TensorView* t : {&p.k_nope, &p.k_rope, &p.v})
          *t = second ? t->Slice(0, cut, s.keys) : t->Slice(0, 0, cut);
        p.key_begin = second ? cut : 0;
        p.o = second ? o_b : o;
        p.lse = second ? lse_b : lse;
        RunKernel(kernel, p);
      }
      RunRef<LseMergeOp>({o.view().Reshape({40, 33}), lse.view().Reshape({40}),
                          o_b.view().Reshape({40, 33}), lse_b.view().Reshape({40})});
      // Two results of the kernel, each within its bound around the same exact value.
      ASSERT_TRUE(Close(
          o, c.o,
          [&](int64_t t, int64_t h, int64_t) { return 2 * BoundOf(kernel, c, s, t, h, 0).o; }))
          << "cut at " << cut;
      ASSERT_TRUE(Close(
          lse, c.lse,
          [&](int64_t t, int64_t h, int64_t) {
            return 2 * BoundOf(kernel, c, s, t, h, static_cast<double>(GetValue(c.lse, t, h))).lse;
          }))
          << "cut at " << cut;
    }
  });
}

// Kernels with bf16 products are used only if the step's arithmetic is bf16.
TEST(MhaConformance, OtherArithmeticNeverMultipliesBF16) {
  Machine machine;
  for (const Isa isa : {x86::kAvx512Bf16, x86::kAmx})
    for (const DType arithmetic : {DType::kF32, DType::kF16}) {
      const MhaOp::Shape shape = {512, 512, 16, 128, 64, 128, arithmetic};
      machine.isa = isa;
      EXPECT_FALSE(MultipliesBF16(Select<MhaOp>(shape, machine)));
    }
  EXPECT_TRUE(MultipliesBF16(Select<MhaOp>({512, 512, 16, 128, 64, 128, DType::kBF16}, machine)));
}

// bf16 dot products at half rate are used only on request.
TEST(MhaConformance, SlowDotProductsAreNotChosen) {
  Machine machine;
  machine.isa = x86::kAvx512Bf16;
  const MhaOp::Shape shape = {512, 512, 16, 128, 64, 128, DType::kBF16};
  EXPECT_EQ(Select<MhaOp>(shape, machine).name, "avx512_bf16.mha");
  machine.uarch = Uarch::kIntelBf16;
  EXPECT_EQ(Select<MhaOp>(shape, machine).name, "avx512.mha");
  machine.forced_kernels = {"avx512_bf16.mha"};
  EXPECT_EQ(Select<MhaOp>(shape, machine).name, "avx512_bf16.mha");
}

}  // namespace
}  // namespace latte::mha_test
