// mha over a grid of lengths, heads and widths that covers every pair of values, and at the edges.
// The tolerances are FlashMLA's for prefill. Inputs are bf16, so kernels that round inputs to bf16
// have the same reference as the others.
#include <gtest/gtest.h>

#include "tests/conformance/support/attention_case.h"
#include "tests/conformance/support/grid.h"
#include "tests/conformance/support/pairs.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte::mha_grid_test {
namespace {

using OpKernel = Kernel<MhaOp>;

DType ArithmeticOf(const OpKernel& kernel) {
  return kernel.isa.Includes(x86::kAvx512Bf16) ? DType::kBF16 : DType::kF32;
}

// Every fast kernel that supports the case with its arithmetic.
template <class F>
void ForEachFastKernelOf(MhaCase& c, const F& f) {
  ForEachKernel<MhaOp>([&](const OpKernel& kernel) {
    c.arithmetic = ArithmeticOf(kernel);
    if (kernel.isa != Isa::kRef && kernel.supports(MhaOp::ShapeOf(c.Params()))) f(kernel);
  });
}

// The number of (query head, key) pairs that the reference may evaluate per case.
constexpr int64_t kReferencePairs = 40000;

// The expected outputs of a case. For large cases, the outputs of the first fast kernel, with some
// queries and heads (chosen by a fixed seed) replaced by the reference's.
struct Wanted {
  Wanted(const MhaCase& c, const MhaShape& s)
      : o(DType::kF32, {s.queries, s.heads, s.v}), lse(DType::kF32, {s.queries, s.heads}) {
    MhaOp::Params p = c.Params();
    p.o = o;
    p.lse = lse;
    p.arithmetic = DType::kF32;
    const OpKernel& fast = Kernels<MhaOp>()[1];
    const int64_t pairs = s.queries * s.heads * c.Visible(s.queries - 1);
    if (pairs <= kReferencePairs || !TestMachine().Has(fast.isa)) {
      RunRef<MhaOp>(p);
      return;
    }
    RunKernel(fast, p, 2);
    std::mt19937 rng(3);
    PutReference(p, 0, s.heads - 1);
    PutReference(p, s.queries - 1, 0);
    for (int64_t left = kReferencePairs; left > 0;) {
      const auto query = static_cast<int64_t>(rng() % static_cast<uint32_t>(s.queries));
      PutReference(p, query, static_cast<int64_t>(rng() % static_cast<uint32_t>(s.heads)));
      left -= c.Visible(query) + 1;
    }
  }

  // Computes one head of one query.
  void PutReference(MhaOp::Params p, int64_t query, int64_t head) {
    const MhaOp::Shape s = MhaOp::ShapeOf(p);
    for (TensorView* x : {&p.q_nope, &p.q_rope}) *x = x->Slice(0, query, query + 1);
    for (TensorView* x : {&p.q_nope, &p.q_rope, &p.k_nope, &p.k_rope, &p.v})
      *x = x->Slice(1, head, head + 1);
    p.q_begin += query;
    const int64_t at = query * s.h + head;
    p.o = {o.view().data + at * s.v * 4, DType::kF32, {1, 1, s.v}};
    p.lse = {lse.view().data + at * 4, DType::kF32, {1, 1}};
    RunRef<MhaOp>(p);
  }

  Tensor o, lse;
};

void ExpectWithinGrid(const OpKernel& kernel, MhaCase& c, const MhaShape& s, const Wanted& want) {
  c.PoisonOutputs();
  RunKernel(kernel, c.Params(), 2);
  CosineDifference cosine;
  const auto width = static_cast<size_t>(s.v);
  for (int64_t at = 0; at < s.queries * s.heads; ++at) {
    const std::span<const float> got(c.o.view().Ptr<float>() + at * s.v, width);
    const std::span<const float> wanted(want.o.Ptr<float>() + at * s.v, width);
    ASSERT_TRUE(RowWithin(got, wanted, kPrefillGrid.out)) << "query " << at / s.heads;
    cosine.Add(got, wanted);
    const std::span<const float> lse(c.lse.view().Ptr<float>() + at, 1);
    const std::span<const float> wanted_lse(want.lse.Ptr<float>() + at, 1);
    ASSERT_TRUE(RowWithin(lse, wanted_lse, kPrefillGrid.lse)) << "lse of query " << at / s.heads;
  }
  ASSERT_LE(cosine.Value(), kPrefillGrid.cosine);
}

void ExpectEveryRowWithinGrid(MhaCase& c, const MhaShape& s) {
  const Wanted want(c, s);
  ForEachFastKernelOf(c, [&](const OpKernel& kernel) { ExpectWithinGrid(kernel, c, s, want); });
}

struct Widths {
  int64_t n, r, v;
};
constexpr int64_t kQueries[] = {1, 4, 62, 213};
constexpr int64_t kKeys[] = {1, 17, 95, 592, 1024, 1521, 1592, 1840};
constexpr int64_t kHeads[] = {1, 3, 9, 64};
constexpr Widths kWidths[] = {{128, 64, 128}, {192, 64, 256}, {64, 0, 64}, {48, 32, 80}};
// The number of (query head, key) pairs per case.
constexpr int64_t kMostScores = 1200000;

// The last query attends to all keys. If there are fewer keys than queries, the first queries
// attend to none: their output is zero and their lse −inf.
TEST(MhaGrid, LengthsHeadsAndWidths) {
  const std::vector<size_t> counts = {std::size(kQueries), std::size(kKeys), std::size(kHeads),
                                      std::size(kWidths), 2};
  const std::vector<Combination> cases = CoverPairs(counts, [](const Combination& c) {
    return kQueries[c[0]] * kKeys[c[1]] * kHeads[c[2]] <= kMostScores;
  });
  ASSERT_EQ(CountPairs(counts, cases), AllPairs(counts));
  const Normals normals;
  std::mt19937 rng(41);
  for (size_t i = 0; i < cases.size(); i += GridShare()) {
    const Combination& at = cases[i];
    const int64_t queries = kQueries[at[0]];
    const int64_t keys = kKeys[at[1]];
    const Widths w = kWidths[at[3]];
    const MhaShape s = {queries,
                        keys,
                        kHeads[at[2]],
                        w.n,
                        w.r,
                        w.v,
                        std::max(keys - queries, int64_t{0}),
                        std::max(queries - keys, int64_t{0}),
                        at[4] == 1};
    SCOPED_TRACE(
        fmt::format("T={} S={} H={} N={} R={} V={}", s.queries, s.keys, s.heads, s.n, s.r, s.v));
    MhaCase c(s, rng, normals);
    c.scale = 1.0f / std::sqrt(static_cast<float>(w.n + w.r));
    ExpectEveryRowWithinGrid(c, s);
    if (HasFatalFailure()) return;
  }
}

TEST(MhaGrid, SeventyThousandQueries) {
  const MhaShape s = {70000, 20, 2, 16, 8, 16, 0, 0, true};
  const Normals normals;
  std::mt19937 rng(42);
  MhaCase c(s, rng, normals);
  ExpectEveryRowWithinGrid(c, s);
}

TEST(MhaGrid, TwentyRunsGiveTheSameBits) {
  const MhaShape s = {203, 333, 3, 128, 64, 128, 130, 0, true};
  const Normals normals;
  std::mt19937 rng(43);
  const int runs = 20 / static_cast<int>(GridShare());
  MhaCase c(s, rng, normals);
  ForEachFastKernelOf(c, [&](const OpKernel& kernel) { ExpectSameBitsEachRun(kernel, c, runs); });
}

constexpr MhaShape kEdge = {70, 333, 3, 128, 64, 128, 270, 0, true};

TEST(MhaGrid, KeysAndValuesOfZerosGiveZeros) {
  const Normals normals;
  std::mt19937 rng(44);
  MhaCase c(kEdge, rng, normals);
  FillWith(c.kv, 0);
  FillWith(c.k_rope, 0);
  ExpectEveryRowWithinGrid(c, kEdge);
  const TensorView o = c.o;
  ForEachFastKernelOf(c, [&](const OpKernel& kernel) {
    c.PoisonOutputs();
    RunKernel(kernel, c.Params(), 2);
    EXPECT_TRUE(std::all_of(o.Ptr<float>(), o.Ptr<float>() + o.elements(),
                            [](float value) { return value == 0.0f; }));
  });
}

// All keys have the same rope part and queries have only a rope part: all weights are equal.
TEST(MhaGrid, EqualScoresOf10000) {
  const Normals normals;
  std::mt19937 rng(45);
  for (const float sign : {1.0f, -1.0f}) {
    MhaCase c(kEdge, rng, normals);
    c.scale = 10000.0f / static_cast<float>(kEdge.r);
    FillWith(c.q_nope, 0);
    FillWith(c.q_rope, sign);
    FillWith(c.k_rope, 1);
    ExpectEveryRowWithinGrid(c, kEdge);
  }
}

// Every query equals a key (for head 0 the last one it attends to), whose score is near 10⁴. The
// scores of other keys are smaller by thousands.
TEST(MhaGrid, OneScoreOf10000) {
  const Normals normals;
  std::mt19937 rng(46);
  MhaCase c(kEdge, rng, normals);
  constexpr float kSquares = 1.92f;  // of 192 numbers of N(0, 1)/10
  c.scale = 10000.0f / kSquares;
  for (int64_t t = 0; t < kEdge.queries; ++t)
    for (int64_t h = 0; h < kEdge.heads; ++h) {
      const int64_t key = h == 0 ? c.Visible(t) - 1 : (7 * t + 97 * h) % c.Visible(t);
      const MhaOp::Params p = c.Params();
      const auto copy = [&](const TensorView& from, const TensorView& to) {
        std::copy_n(from.Ptr<float>() + key * from.stride[0] + h * from.stride[1], from.shape[2],
                    to.Ptr<float>() + t * to.stride[0] + h * to.stride[1]);
      };
      copy(p.k_nope, p.q_nope);
      copy(p.k_rope, p.q_rope);
    }
  ExpectEveryRowWithinGrid(c, kEdge);
}

}  // namespace
}  // namespace latte::mha_grid_test
