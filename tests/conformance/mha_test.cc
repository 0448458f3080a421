// mha against the reference: values, bits, and keys that may not be read.
#include <gtest/gtest.h>

#include "tests/conformance/attention_case.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/rows.h"
#include "tests/conformance/tolerance.h"

namespace latte {
namespace {

using Row = Kernel<MhaOp>;

// The bound of row (t, h), for keys and values between −1 and 1.
AttentionBound BoundOf(const MhaCase& c, const MhaShape& s, int64_t t, int64_t h, double lse) {
  double sum = 0;
  for (const TensorView& q : {c.q_nope.view(), c.q_rope.view()})
    for (int64_t i = 0; i < q.shape[2]; ++i)
      sum += std::abs(static_cast<double>(GetValue(q, t, h, i)));
  return BoundAttention(s.n + s.r, c.Visible(t), sum * static_cast<double>(c.Params().scale), lse);
}

void ExpectSameBitsHoweverCut(const Row& row, MhaCase& c, const MhaShape& s) {
  Tensor o(DType::kF32, {s.queries, s.heads, s.v});
  Tensor lse(DType::kF32, {s.queries, s.heads});
  MhaOp::Params whole = c.Params();
  whole.o = o;
  whole.lse = lse;
  RunRow(row, whole);
  for (const int threads : {1, 2, 3}) {
    c.PoisonOutputs();
    RunRow(row, c.Params(), threads);
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
      // Keys behind the last query of the chunk are not there at all.
      for (TensorView* t : {&p.k_nope, &p.k_rope, &p.v}) *t = t->Slice(0, 0, c.Visible(end - 1));
      RunRow(row, p, 2);
    }
    ASSERT_TRUE(SameBits(c.o, o)) << "chunks of " << chunk;
    ASSERT_TRUE(SameBits(c.lse, lse)) << "chunks of " << chunk << ", lse";
  }
}

// The last key that any query sees becomes NaN; queries that do not see it are as before.
void ExpectFutureKeysDoNotMatter(const Row& row, MhaCase& c, const MhaShape& s) {
  const int64_t keys = c.Visible(s.queries - 1);
  if (keys == 0) return;
  RunRow(row, c.Params());
  const std::vector<std::byte> before = c.o.Bytes();
  const TensorView key = c.kv.view().Slice(0, keys - 1, keys);
  const std::vector<std::byte> saved(key.data, key.data + key.elements() * 4);
  std::memset(key.data, 0xff, saved.size());
  RunRow(row, c.Params());
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
    Tensor want(DType::kF32, {s.queries, s.heads, s.v});
    Tensor want_lse(DType::kF32, {s.queries, s.heads});
    MhaOp::Params p = c.Params();
    p.o = want;
    p.lse = want_lse;
    RunRef<MhaOp>(p);
    ForEachFastRow<MhaOp>(MhaOp::ShapeOf(p), [&](const Row& row) {
      c.PoisonOutputs();
      RunRow(row, c.Params(), 2);
      ASSERT_TRUE(Close(c.o, want,
                        [&](int64_t t, int64_t h, int64_t) { return BoundOf(c, s, t, h, 0).o; }));
      ASSERT_TRUE(Close(c.lse, want_lse, [&](int64_t t, int64_t h, int64_t) {
        return BoundOf(c, s, t, h, static_cast<double>(GetValue(want_lse, t, h))).lse;
      }));
      ExpectSameBitsHoweverCut(row, c, s);
      ExpectFutureKeysDoNotMatter(row, c, s);
    });
    if (HasFatalFailure()) return;
  }
}

// Keys cut at any multiple of 64 and at 40, merged by lse, agree with one pass: what chunked
// prompts rest on.
TEST(MhaConformance, PartsOfTheKeysMergeToTheWhole) {
  std::mt19937 rng(8);
  const MhaShape s = {20, 300, 2, 24, 8, 33, 280, 0, true};
  MhaCase c(s, rng);
  ForEachRow<MhaOp>([&](const Row& row) {
    RunRow(row, c.Params());
    for (const int64_t cut : {40, 64, 192, 290}) {
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
        RunRow(row, p);
      }
      RunRef<LseMergeOp>({o.view().Reshape({40, 33}), lse.view().Reshape({40}),
                          o_b.view().Reshape({40, 33}), lse_b.view().Reshape({40})});
      // Two results of the kernel, each within its bound of the same exact value.
      ASSERT_TRUE(Close(
          o, c.o, [&](int64_t t, int64_t h, int64_t) { return 2 * BoundOf(c, s, t, h, 0).o; }))
          << "cut at " << cut;
      ASSERT_TRUE(
          Close(lse, c.lse,
                [&](int64_t t, int64_t h, int64_t) {
                  return 2 * BoundOf(c, s, t, h, static_cast<double>(GetValue(c.lse, t, h))).lse;
                }))
          << "cut at " << cut;
    }
  });
}

}  // namespace
}  // namespace latte
