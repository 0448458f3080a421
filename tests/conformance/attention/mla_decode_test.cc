// Compares mla_decode with the reference: values, bits, and keys that must not be read.
#include <array>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/decode_bound.h"

namespace latte::mla_decode_test {
namespace {

using OpKernel = DecodeKernel;

// The reference's outputs for a case with rounded queries.
struct Expected {
  Expected(const DecodeCase& c, const DecodeShape& s, Rounding rounding)
      : q_latent(RoundedQueries(c.q_latent, rounding, kMaxByte)),
        q_rope(RoundedQueries(c.q_rope, rounding, LargestRope(rounding, s.r))),
        o(DType::kF32, {c.o.view().shape[0], s.heads, s.c}),
        lse(DType::kF32, {c.o.view().shape[0], s.heads}) {
    MlaDecodeOp::Params p = c.Params();
    p.q_latent = q_latent;
    p.q_rope = q_rope;
    p.o_latent = o;
    p.lse = lse;
    RunRef<MlaDecodeOp>(p);
  }

  // The largest score of a row.
  double MaxScore(const DecodeCase& c, const DecodeShape& s, int64_t t, int64_t h) const {
    std::vector<float> key(static_cast<size_t>(s.c + s.r));
    double max = -1e30;
    for (size_t i = 0; i < c.sequences.size(); ++i) {
      const int64_t index = t - c.sequences[i].query_start;
      if (index < 0 || index >= c.sequences[i].count) continue;
      const int64_t keys = c.sequences[i].total_len() - c.sequences[i].count + index + 1;
      for (int64_t j = 0; j < keys; ++j) {
        ref::DequantiseRow(c.Format(), c.Row(i, j).data, s.c, s.r, key.data());
        double sum = 0;
        for (int64_t d = 0; d < s.c + s.r; ++d)
          sum += static_cast<double>(key[static_cast<size_t>(d)]) *
                 static_cast<double>(d < s.c ? GetValue(q_latent, t, h, d)
                                             : GetValue(q_rope, t, h, d - s.c));
        max = std::max(max, sum * static_cast<double>(s.scale));
      }
    }
    return max;
  }

  Tensor q_latent, q_rope, o, lse;
};

// The error from rounding weights to bytes: at most half of 1/255 of the largest weight of a block,
// which is at most the weight of the largest score: e^(score − lse) of the sum.
double ByteWeights(const DecodeCase& c, const DecodeShape& s, const Expected& want, int64_t t,
                   int64_t h) {
  int64_t keys = 0;
  for (const SequenceChunk& sequence : c.sequences)
    if (t >= sequence.query_start) keys = sequence.total_len();
  const double lse = static_cast<double>(GetValue(want.lse, t, h));
  const double sum = std::exp(lse - want.MaxScore(c, s, t, h));
  return 1.01 * static_cast<double>(keys) / 510 / sum;
}

// Every output must be within its bound.
void ExpectClose(const OpKernel& kernel, const DecodeCase& c, const DecodeShape& s,
                 const Expected& want) {
  for (int64_t t = 0; t < want.o.view().shape[0]; ++t)
    for (int64_t h = 0; h < s.heads; ++h) {
      const AttentionBound bound =
          BoundOf(kernel, c, s, t, h, static_cast<double>(GetValue(want.lse, t, h)));
      const bool bytes = IsBytes(RoundingOf(kernel, s.cache.kind));
      const double o = bound.o + (bytes ? ByteWeights(c, s, want, t, h) : 0);
      const auto at = [&](const TensorView& x) { return x.Slice(0, t, t + 1).Slice(1, h, h + 1); };
      ASSERT_TRUE(Close(at(c.o), at(want.o), [&](int64_t, int64_t, int64_t) { return o; }))
          << "token " << t << ", head " << h;
      ASSERT_TRUE(
          Close(at(c.lse), at(want.lse), [&](int64_t, int64_t, int64_t) { return bound.lse; }))
          << "token " << t << ", head " << h;
    }
}

// A call for some tokens of one sequence, of which the first `begin` are already cached.
MlaDecodeOp::Params Chunk(const DecodeCase& c, size_t i, int64_t begin, int64_t end,
                          SequenceChunk& sequence) {
  sequence = c.sequences[i];
  const int64_t first = sequence.query_start + begin;
  const int64_t last = sequence.query_start + end;
  sequence.cached_len += begin;
  sequence.count = end - begin;
  sequence.query_start = 0;
  sequence.pages = sequence.pages.first(
      static_cast<size_t>(CeilDiv(sequence.total_len(), c.pages.view().shape[1])));
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

void ExpectSameBitsHoweverCut(const OpKernel& kernel, DecodeCase& c, const DecodeShape& s) {
  Tensor o(DType::kF32, {c.o.view().shape[0], s.heads, s.c});
  Tensor lse(DType::kF32, {c.o.view().shape[0], s.heads});
  MlaDecodeOp::Params whole = c.Params();
  whole.o_latent = o;
  whole.lse = lse;
  RunKernel(kernel, whole);
  for (const int threads : ThreadCounts(kernel)) {
    c.PoisonOutputs();
    RunKernel(kernel, c.Params(), threads);
    ExpectSame(c, o, lse, fmt::format("{} threads", threads));
  }
  for (const Uarch uarch : UarchsOf(kernel)) {
    c.PoisonOutputs();
    RunKernelAs(uarch, kernel, c.Params(), 2);
    ExpectSame(c, o, lse, std::string(Name(uarch)));
  }
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{1} << 20}) {
    c.PoisonOutputs();
    for (size_t i = 0; i < c.sequences.size(); ++i)
      for (int64_t begin = 0; begin < c.sequences[i].count; begin += chunk) {
        SequenceChunk sequence;
        RunKernel(kernel,
                  Chunk(c, i, begin, std::min(c.sequences[i].count, begin + chunk), sequence), 2);
      }
    ExpectSame(c, o, lse, fmt::format("each sequence alone, chunks of {}", chunk));
  }
  // The first sequence may begin within a step.
  c.PoisonOutputs();
  std::vector<SequenceChunk> later(c.sequences);
  for (SequenceChunk& sequence : later) sequence.query_start += 5;
  MlaDecodeOp::Params within = c.Params();
  within.sequences = later;
  RunKernel(kernel, within, 2);
  ExpectSame(c, o, lse, "within a step");
  // The output is the same without lse.
  c.PoisonOutputs();
  MlaDecodeOp::Params without = c.Params();
  without.lse = TensorView();
  RunKernel(kernel, without);
  ASSERT_TRUE(SameBits(c.o, o));
}

// Sets the last key of each sequence to NaN; all but its last query must not change.
void ExpectFutureKeysDoNotMatter(const OpKernel& kernel, DecodeCase& c) {
  RunKernel(kernel, c.Params());
  const std::vector<std::byte> before = c.o.Bytes();
  for (size_t i = 0; i < c.sequences.size(); ++i) {
    const TensorView key = c.Row(i, c.sequences[i].total_len() - 1);
    const std::vector<std::byte> saved(key.data, key.data + key.elements() * SizeOf(key.dtype));
    std::memset(key.data, 0xff, saved.size());
    RunKernel(kernel, c.Params());
    const TensorView o = c.o;
    const auto begin = static_cast<size_t>(c.sequences[i].query_start * o.stride[0]) * 4;
    const auto rows = static_cast<size_t>((c.sequences[i].count - 1) * o.stride[0]) * 4;
    ASSERT_EQ(std::memcmp(o.data + begin, before.data() + begin, rows), 0);
    ASSERT_TRUE(std::isnan(GetValue(o, c.sequences[i].query_start + c.sequences[i].count - 1)));
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
    std::map<Rounding, Expected> expected;  // computed as kernels need them
    ForEachFastKernel<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
      const Rounding rounding = RoundingOf(kernel, s.cache.kind);
      c.PoisonOutputs();
      RunKernel(kernel, c.Params(), 2);
      ExpectClose(kernel, c, s, expected.try_emplace(rounding, c, s, rounding).first->second);
      ExpectSameBitsHoweverCut(kernel, c, s);
      ExpectFutureKeysDoNotMatter(kernel, c);
    });
    if (HasFatalFailure()) return;
  }
}

// Few keys in every format, for kernels that are slow where they are tested.
TEST(MlaDecodeConformance, FewKeysOfEveryFormat) {
  std::mt19937 rng(6);
  for (const CacheDType cache : kAllCaches)
    for (const auto& [c, r] : {std::pair<int64_t, int64_t>{33, 31}, {160, 6}, {1, 0}}) {
      const DecodeShape s = {2, c, r, 16, cache, 0.3f, {{2, 18}, {1, 1}, {0, 5}, {1, 33}}};
      SCOPED_TRACE(fmt::format("{} C={} R={}", Name(cache), c, r));
      DecodeCase test(s, rng);
      ForEachFastKernel<MlaDecodeOp>(
          MlaDecodeOp::ShapeOf(test.Params()), [&](const OpKernel& kernel) {
            test.PoisonOutputs();
            RunKernel(kernel, test.Params(), 2);
            ExpectClose(kernel, test, s, Expected(test, s, RoundingOf(kernel, cache.kind)));
          });
      if (HasFatalFailure()) return;
    }
}

// Rows whose latents are all subnormal or zero, with a scale that makes them matter, and a NaN.
TEST(MlaDecodeConformance, NumbersOfF8ThatAreNotNormal) {
  std::mt19937 rng(7);
  for (const int64_t heads : {2, 16}) {
    const DecodeShape s = {heads, 512, 64, 64, {DType::kU8, CacheFormat::kF8}, 0.07f, {{1, 70}}};
    DecodeCase c(s, rng);
    for (int64_t key = 0; key < 70; ++key) {
      std::byte* const row = c.Row(0, key).data;
      for (int64_t i = 0; i < s.c; ++i) row[i] = static_cast<std::byte>(rng() & 0x81);
      const std::array<float, 4> scales = {64, 64, 32, 64};
      std::memcpy(row + s.c, scales.data(), sizeof(scales));
    }
    ForEachFastKernel<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
      RunKernel(kernel, c.Params());
      ExpectClose(kernel, c, s, Expected(c, s, RoundingOf(kernel, s.cache.kind)));
      std::byte& number = c.Row(0, 5).data[300];
      const std::byte saved = std::exchange(number, std::byte{0x7f});
      RunKernel(kernel, c.Params());
      EXPECT_TRUE(std::isnan(GetValue(c.o, 0, 0, 300)));
      number = saved;
    });
  }
}

// A head gives the same bits alone and with any other heads.
TEST(MlaDecodeConformance, HeadsDoNotDependOnTheirNeighbours) {
  std::mt19937 rng(6);
  const DecodeShape s = {37, 64, 16, 16, CacheDType(), 0.2f, {{2, 70}}};
  DecodeCase c(s, rng);
  ForEachFastKernel<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
    RunKernel(kernel, c.Params());
    for (const auto& [begin, end] :
         {std::pair<int64_t, int64_t>{0, 1}, {36, 37}, {3, 14}, {1, 37}}) {
      MlaDecodeOp::Params p = c.Params();
      Tensor o(DType::kF32, {2, end - begin, s.c});
      p.q_latent = p.q_latent.Slice(1, begin, end);
      p.q_rope = p.q_rope.Slice(1, begin, end);
      p.o_latent = o;
      p.lse = TensorView();
      RunKernel(kernel, p);
      ASSERT_TRUE(SameBits(o, c.o.view().Slice(1, begin, end))) << begin << " to " << end;
    }
  });
}

// Only a bf16 cache allows bf16 arithmetic.
TEST(MlaDecodeConformance, OnlyBF16CachesAreMultipliedAsBF16) {
  for (const DType cache : {DType::kF32, DType::kF16, DType::kBF16}) {
    const MlaDecodeOp::Shape shape = {1, 16, 512, 64, 64, cache, CacheFormat::kPlain};
    for (const OpKernel& kernel : Kernels<MlaDecodeOp>()) {
      if (!kernel.name.ends_with(".mla_decode_bf16")) continue;
      EXPECT_EQ(kernel.supports(shape), cache == DType::kBF16) << Name(cache);
    }
  }
}

// If all values have the same size, the rope parts give the largest possible sums.
TEST(MlaDecodeConformance, TheLargestRopePartsFit) {
  std::mt19937 rng(8);
  const auto ones = [](const TensorView& x, std::mt19937&) {
    for (int64_t i = 0; i < x.shape[0]; ++i)
      for (int64_t j = 0; j < (x.rank > 1 ? x.shape[1] : 1); ++j)
        for (int64_t k = 0; k < (x.rank > 2 ? x.shape[2] : 1); ++k)
          x.Ptr<float>()[i * x.stride[0] + j * x.stride[1] + k * x.stride[2]] = 1;
  };
  for (const int64_t r : {1, 64, 100, 512}) {
    SCOPED_TRACE(r);
    const auto width = static_cast<float>(64 + r);
    const DecodeShape s = {3, 64, r, 16, {DType::kU8, CacheFormat::kI8}, 8 / width, {{1, 40}}};
    DecodeCase c(s, rng, ones);
    ForEachFastKernel<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
      RunKernel(kernel, c.Params());
      ExpectClose(kernel, c, s, Expected(c, s, RoundingOf(kernel, s.cache.kind)));
    });
  }
}

TEST(MlaDecodeConformance, RopePartsWhoseSumsDoNotFitAreNotMultipliedAsBytes) {
  for (const int64_t r : {512, 513}) {
    const MlaDecodeOp::Shape shape = {1, 16, 512, r, 64, DType::kU8, CacheFormat::kI8};
    for (const OpKernel& kernel : Kernels<MlaDecodeOp>()) {
      if (!kernel.name.ends_with("vnni.mla_decode") && !kernel.name.ends_with("_s8")) continue;
      EXPECT_EQ(kernel.supports(shape), r == 512) << kernel.name;
    }
  }
}

TEST(MlaDecodeConformance, TooWideRowsAreLeftToTheReference) {
  const MlaDecodeOp::Shape wide = {1, 1, 2048, 64, 64, DType::kBF16};
  EXPECT_EQ(Select<MlaDecodeOp>(wide, TestMachine()).isa, Isa::kRef);
}

}  // namespace
}  // namespace latte::mla_decode_test
