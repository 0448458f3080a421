// mla_decode against the reference: values, bits, and keys that may not be read.
#include <gtest/gtest.h>

#include "tests/conformance/attention_case.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/rows.h"
#include "tests/conformance/tolerance.h"

namespace latte {
namespace {

using Row = Kernel<MlaDecodeOp>;

// scale·Σ|q||k| of one row, for keys between −1 and 1.
double ScoreBound(const DecodeCase& c, int64_t t, int64_t h, float scale) {
  double sum = 0;
  for (const TensorView& q : {c.q_latent.view(), c.q_rope.view()})
    for (int64_t i = 0; i < q.shape[2]; ++i)
      sum += std::abs(static_cast<double>(GetValue(q, t, h, i)));
  return sum * static_cast<double>(scale);
}

// Rows of this instruction set round queries and probabilities to bf16.
bool MultipliesBF16(const Row& row) { return row.isa >= Isa::kAvx512Bf16; }

// The bound of head h of token t.
AttentionBound BoundOf(const Row& row, const DecodeCase& c, const DecodeShape& s, int64_t t,
                       int64_t h, double lse) {
  const double unit = MultipliesBF16(row) ? kBF16Unit : 0;
  const double scores = ScoreBound(c, t, h, s.scale) * (1 + unit);  // of rounded queries
  for (const DecodeSequence& sequence : c.sequences)
    if (t < sequence.query_start + sequence.query_len)
      return BoundAttention(s.c + s.r, sequence.total_len, scores, lse, unit);
  return {};
}

// What the reference makes of a case, its queries rounded to bf16 or not.
struct Expected {
  Expected(const DecodeCase& c, const DecodeShape& s, bool round_queries)
      : o(DType::kF32, {c.o.view().shape[0], s.heads, s.c}),
        lse(DType::kF32, {c.o.view().shape[0], s.heads}) {
    MlaDecodeOp::Params p = c.Params();
    const Tensor q_latent = Queries(p.q_latent, round_queries);
    const Tensor q_rope = Queries(p.q_rope, round_queries);
    p.q_latent = q_latent;
    p.q_rope = q_rope;
    p.o_latent = o;
    p.lse = lse;
    RunRef<MlaDecodeOp>(p);
  }
  static Tensor Queries(const TensorView& q, bool round) {
    Tensor out(DType::kF32, {q.shape[0], q.shape[1], q.shape[2]});
    float* to = out.Ptr<float>();
    for (int64_t t = 0; t < q.shape[0]; ++t)
      for (int64_t h = 0; h < q.shape[1]; ++h)
        for (int64_t i = 0; i < q.shape[2]; ++i, ++to)
          *to = round ? RoundToBF16(GetValue(q, t, h, i)) : GetValue(q, t, h, i);
    return out;
  }

  Tensor o, lse;
};

// A call with some of the tokens of one sequence, the first `begin` of them already cached.
MlaDecodeOp::Params Chunk(const DecodeCase& c, size_t i, int64_t begin, int64_t end,
                          DecodeSequence& sequence) {
  sequence = c.sequences[i];
  const int64_t first = sequence.query_start + begin;
  const int64_t last = sequence.query_start + end;
  sequence.total_len -= sequence.query_len - end;
  sequence.query_len = end - begin;
  sequence.query_start = 0;
  sequence.page_table = sequence.page_table.first(
      static_cast<size_t>(CeilDiv(sequence.total_len, c.pages.view().shape[1])));
  MlaDecodeOp::Params p = c.Params();
  p.q_latent = p.q_latent.Slice(0, first, last);
  p.q_rope = p.q_rope.Slice(0, first, last);
  p.o_latent = p.o_latent.Slice(0, first, last);
  p.lse = p.lse.Slice(0, first, last);
  p.sequences = {&sequence, 1};
  return p;
}

void ExpectSame(const DecodeCase& c, const Tensor& o, const Tensor& lse, const std::string& how) {
  ASSERT_TRUE(SameBits(c.o, o)) << how;
  ASSERT_TRUE(SameBits(c.lse, lse)) << how << ", lse";
}

void ExpectSameBitsHoweverCut(const Row& row, DecodeCase& c, const DecodeShape& s) {
  Tensor o(DType::kF32, {c.o.view().shape[0], s.heads, s.c});
  Tensor lse(DType::kF32, {c.o.view().shape[0], s.heads});
  MlaDecodeOp::Params whole = c.Params();
  whole.o_latent = o;
  whole.lse = lse;
  RunRow(row, whole);
  for (const int threads : {1, 2, 3}) {
    c.PoisonOutputs();
    RunRow(row, c.Params(), threads);
    ExpectSame(c, o, lse, fmt::format("{} threads", threads));
  }
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{1} << 20}) {
    c.PoisonOutputs();
    for (size_t i = 0; i < c.sequences.size(); ++i)
      for (int64_t begin = 0; begin < c.sequences[i].query_len; begin += chunk) {
        DecodeSequence sequence;
        RunRow(row, Chunk(c, i, begin, std::min(c.sequences[i].query_len, begin + chunk), sequence),
               2);
      }
    ExpectSame(c, o, lse, fmt::format("each sequence alone, chunks of {}", chunk));
  }
  // Without lse the output is the same.
  c.PoisonOutputs();
  MlaDecodeOp::Params without = c.Params();
  without.lse = TensorView();
  RunRow(row, without);
  ASSERT_TRUE(SameBits(c.o, o));
}

// The last key of each sequence becomes NaN; all but its last query are as before.
void ExpectFutureKeysDoNotMatter(const Row& row, DecodeCase& c) {
  RunRow(row, c.Params());
  const std::vector<std::byte> before = c.o.Bytes();
  for (size_t i = 0; i < c.sequences.size(); ++i) {
    const TensorView key = c.Row(i, c.sequences[i].total_len - 1);
    const std::vector<std::byte> saved(key.data, key.data + key.elements() * SizeOf(key.dtype));
    std::memset(key.data, 0xff, saved.size());
    RunRow(row, c.Params());
    const TensorView o = c.o;
    const auto begin = static_cast<size_t>(c.sequences[i].query_start * o.stride[0]) * 4;
    const auto rows = static_cast<size_t>((c.sequences[i].query_len - 1) * o.stride[0]) * 4;
    ASSERT_EQ(std::memcmp(o.data + begin, before.data() + begin, rows), 0);
    ASSERT_TRUE(std::isnan(GetValue(o, c.sequences[i].query_start + c.sequences[i].query_len - 1)));
    std::memcpy(key.data, saved.data(), saved.size());
  }
}

TEST(MlaDecodeConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(5);
  for (const DecodeShape& s : DecodeShapes()) {
    SCOPED_TRACE(fmt::format("H={} C={} R={} P={} {} {} sequences, the first {} of {}", s.heads,
                             s.c, s.r, s.page_tokens, Name(s.cache), s.sequences.size(),
                             s.sequences[0].query_len, s.sequences[0].total_len));
    DecodeCase c(s, rng);
    const Expected exact(c, s, false);
    const Expected rounded(c, s, true);
    ForEachFastRow<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const Row& row) {
      const Expected& want = MultipliesBF16(row) ? rounded : exact;
      c.PoisonOutputs();
      RunRow(row, c.Params(), 2);
      ASSERT_TRUE(Close(c.o, want.o, [&](int64_t t, int64_t h, int64_t) {
        return BoundOf(row, c, s, t, h, 0).o;
      }));
      ASSERT_TRUE(Close(c.lse, want.lse, [&](int64_t t, int64_t h, int64_t) {
        return BoundOf(row, c, s, t, h, static_cast<double>(GetValue(want.lse, t, h))).lse;
      }));
      ExpectSameBitsHoweverCut(row, c, s);
      ExpectFutureKeysDoNotMatter(row, c);
    });
    if (HasFatalFailure()) return;
  }
}

// A head alone, or with any others, gives the same bits.
TEST(MlaDecodeConformance, HeadsDoNotDependOnTheirNeighbours) {
  std::mt19937 rng(6);
  const DecodeShape s = {37, 64, 16, 16, DType::kBF16, 0.2f, {{2, 70}}};
  DecodeCase c(s, rng);
  ForEachFastRow<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const Row& row) {
    RunRow(row, c.Params());
    for (const auto& [begin, end] :
         {std::pair<int64_t, int64_t>{0, 1}, {36, 37}, {3, 14}, {1, 37}}) {
      MlaDecodeOp::Params p = c.Params();
      Tensor o(DType::kF32, {2, end - begin, s.c});
      p.q_latent = p.q_latent.Slice(1, begin, end);
      p.q_rope = p.q_rope.Slice(1, begin, end);
      p.o_latent = o;
      p.lse = TensorView();
      RunRow(row, p);
      ASSERT_TRUE(SameBits(o, c.o.view().Slice(1, begin, end))) << begin << " to " << end;
    }
  });
}

// Only a bf16 cache says that bf16 was asked for.
TEST(MlaDecodeConformance, OnlyBF16CachesAreMultipliedAsBF16) {
  for (const DType cache : {DType::kF32, DType::kF16, DType::kBF16}) {
    const MlaDecodeOp::Shape shape = {1, 16, 512, 64, 64, cache};
    for (const Row& row : Kernels<MlaDecodeOp>()) {
      if (!MultipliesBF16(row)) continue;
      EXPECT_EQ(row.supports(shape), cache == DType::kBF16) << Name(cache);
    }
  }
}

TEST(MlaDecodeConformance, TooWideRowsAreLeftToTheReference) {
  const MlaDecodeOp::Shape wide = {1, 1, 2048, 64, 64, DType::kBF16};
  EXPECT_EQ(Select<MlaDecodeOp>(wide, TestMachine()).isa, Isa::kRef);
}

}  // namespace
}  // namespace latte
