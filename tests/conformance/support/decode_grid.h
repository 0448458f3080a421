// Runs cases of mla_decode that are too large for the reference: some outputs are compared with the
// reference, the others with another kernel.
#pragma once

#include <map>

#include "tests/conformance/support/decode_bound.h"
#include "tests/conformance/support/grid.h"

namespace latte {

inline constexpr CacheDType kGridCaches[] = {
    CacheDType::Plain(DType::kBF16),
    CacheDType::Plain(DType::kF32),
    {DType::kU8, CacheFormat::kF8},
    {DType::kU8, CacheFormat::kI8},
};

// The number of (query head, key) pairs that the reference may evaluate per case.
inline constexpr int64_t kReferencePairs = 8000;

inline std::string Describe(const DecodeShape& s) {
  return fmt::format("H={} C={} R={} P={} {}, {} sequences, the last with {} of {}", s.heads, s.c,
                     s.r, s.page_tokens, Name(s.cache), s.sequences.size(),
                     s.sequences.back().query_len, s.sequences.back().total_len);
}

// The expected outputs of all kernels that round queries alike: the reference's outputs for up to
// `most` (query head, key) pairs. For larger cases, the outputs of the first fast kernel, with some
// tokens and heads (chosen by a fixed seed) replaced by the reference's.
class DecodeWanted {
 public:
  DecodeWanted(const DecodeCase& c, const DecodeShape& s, Rounding rounding, int64_t most)
      : o(DType::kF32, {c.o.view().shape[0], s.heads, s.c}),
        lse(DType::kF32, {c.o.view().shape[0], s.heads}) {
    MlaDecodeOp::Params p = c.Params();
    if (rounding != Rounding::kNone) {
      q_latent_ = RoundedQueries(p.q_latent, rounding, kMaxByte);
      q_rope_ = RoundedQueries(p.q_rope, rounding, LargestRope(rounding, p.q_rope.shape[2]));
      p.q_latent = q_latent_;
      p.q_rope = q_rope_;
    }
    p.o_latent = o;
    p.lse = lse;
    int64_t pairs = 0;
    for (const SequenceChunk& sequence : p.sequences)
      pairs += sequence.total_len() * sequence.count * s.heads;
    if (pairs <= most) {
      RunRef<MlaDecodeOp>(p);
    } else {
      RunKernel(FirstFastRow(MlaDecodeOp::ShapeOf(p)), p, 2);
      PutSamples(p, most);
    }
  }

 private:
  static const DecodeKernel& FirstFastRow(const MlaDecodeOp::Shape& shape) {
    const auto kernels = Kernels<MlaDecodeOp>();
    const DecodeKernel& fast = kernels[1];
    return TestMachine().Has(fast.isa) && fast.supports(shape) ? fast : kernels[0];
  }

  // The last token with the first head, the first token with the last head, then random ones.
  void PutSamples(const MlaDecodeOp::Params& p, int64_t most) {
    std::mt19937 rng(2);
    const int64_t tokens = o.view().shape[0];
    const int64_t heads = o.view().shape[1];
    PutReference(p, tokens - 1, 0);
    PutReference(p, 0, heads - 1);
    for (int64_t left = most; left > 0;) {
      const auto token = static_cast<int64_t>(rng() % static_cast<uint32_t>(tokens));
      left -= PutReference(p, token, static_cast<int64_t>(rng() % static_cast<uint32_t>(heads)));
    }
  }

  // Computes one head of one token; returns its number of keys.
  int64_t PutReference(MlaDecodeOp::Params p, int64_t token, int64_t head) {
    const auto& sequence =
        *std::find_if(p.sequences.begin(), p.sequences.end(),
                      [&](const SequenceChunk& s) { return token < s.query_start + s.count; });
    const int64_t behind = sequence.query_start + sequence.count - 1 - token;
    const SequenceChunk alone = {
        .count = 1, .cached_len = sequence.total_len() - behind - 1, .pages = sequence.pages};
    p.sequences = {&alone, 1};
    for (TensorView* q : {&p.q_latent, &p.q_rope})
      *q = q->Slice(0, token, token + 1).Slice(1, head, head + 1);
    const int64_t at = token * o.view().shape[1] + head;
    const int64_t c = p.q_latent.shape[2];
    p.o_latent = {o.view().data + at * c * 4, DType::kF32, {1, 1, c}};
    p.lse = {lse.view().data + at * 4, DType::kF32, {1, 1}};
    RunRef<MlaDecodeOp>(p);
    return alone.total_len();
  }

  Tensor q_latent_, q_rope_;

 public:
  Tensor o, lse;
};

// Whether the error of lse may exceed FlashMLA's limit. Kernels with 8-bit products drop products
// of lower bytes or bits of keys from every score, and kernels with bf16 products round keys of
// quantised caches to bf16. This changes a score by a part of Σ|q||k|, but the limit is relative to
// lse, which is small if there are few keys. BoundOf covers these scores.
inline bool ChangesScores(const DecodeKernel& kernel, CacheFormat cache) {
  const Rounding rounding = RoundingOf(kernel, cache);
  return IsBytes(rounding) || (rounding == Rounding::kBF16 && cache != CacheFormat::kPlain);
}

// Runs a kernel on a case: every output must be within FlashMLA's tolerances.
inline void ExpectWithinGrid(const DecodeKernel& kernel, DecodeCase& c, const DecodeShape& s,
                             const DecodeWanted& want) {
  c.PoisonOutputs();
  RunKernel(kernel, c.Params(), 2);
  CosineDifference cosine;
  const auto width = static_cast<size_t>(s.c);
  for (int64_t t = 0; t < c.o.view().shape[0]; ++t)
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t at = t * s.heads + h;
      const std::span<const float> got(c.o.view().Ptr<float>() + at * s.c, width);
      const std::span<const float> wanted(want.o.Ptr<float>() + at * s.c, width);
      ASSERT_TRUE(RowWithin(got, wanted, kDecodeGrid.out)) << "token " << t << ", head " << h;
      cosine.Add(got, wanted);
      const float lse = c.lse.view().Ptr<float>()[at];
      const auto wanted_lse = static_cast<double>(want.lse.Ptr<float>()[at]);
      double limit = kDecodeGrid.lse.Of(wanted_lse);
      if (ChangesScores(kernel, s.cache.kind))
        limit = std::max(limit, BoundOf(kernel, c, s, t, h, wanted_lse).lse);
      ASSERT_TRUE(IsWithin(lse, want.lse.Ptr<float>()[at], limit))
          << "token " << t << ", head " << h << ": lse " << lse << " instead of " << wanted_lse;
    }
  ASSERT_LE(cosine.Value(), kDecodeGrid.cosine);
}

// As above, for every fast kernel. most: see DecodeWanted.
inline void ExpectEveryRowWithinGrid(DecodeCase& c, const DecodeShape& s,
                                     int64_t most = kReferencePairs) {
  const DecodeWanted exact(c, s, Rounding::kNone, most);
  std::map<Rounding, DecodeWanted> bytes;  // computed as kernels need them
  ForEachFastKernel<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const DecodeKernel& kernel) {
    // The queries of a case are already bf16.
    const Rounding rounding = RoundingOf(kernel, s.cache.kind);
    const DecodeWanted& wanted =
        IsBytes(rounding) ? bytes.try_emplace(rounding, c, s, rounding, most).first->second : exact;
    ExpectWithinGrid(kernel, c, s, wanted);
  });
}

}  // namespace latte
