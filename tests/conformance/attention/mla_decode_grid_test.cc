// mla_decode over the grids of FlashMLA's and FlashInfer's tests with FlashMLA's tolerances. The
// cases cover every pair of values of any two parameters. Pages are in random order, unused pages
// and rows after the end of a sequence are NaN, and entries after a page table are invalid
// (DecodeCase).
#include <optional>

#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/decode_grid.h"
#include "tests/conformance/support/pairs.h"

namespace latte::mla_decode_grid_test {
namespace {

using OpKernel = DecodeKernel;

struct Latent {
  int64_t c, r;
};
constexpr int64_t kPages[] = {64, 16, 32, 128, 256};
constexpr Latent kLatents[] = {{512, 64}, {256, 32}, {256, 64}, {512, 0}};
// The scores of a case: (query head, key) pairs.
constexpr int64_t kMostScores = 600000;
// The number of keys above which the sequences of a case share pages.
constexpr int64_t kOwnKeys = 8192;

float ScaleOf(const Latent& latent) {
  return 1.0f / std::sqrt(static_cast<float>(latent.c + latent.r));
}

// With many sequences, pages come from a shared pool: filling separate pages would take longer than
// the test.
int64_t PoolOf(const std::vector<SequenceShape>& sequences, int64_t page_tokens) {
  int64_t keys = 0;
  int64_t longest = 0;
  for (const SequenceShape& s : sequences) {
    keys += s.total_len;
    longest = std::max(longest, CeilDiv(s.total_len, page_tokens));
  }
  return keys > kOwnKeys ? std::max(longest, kOwnKeys / page_tokens) : 0;
}

// Calls f(case, shape) for every cache format of the grid.
template <class F>
void ForEachGridCache(DecodeShape s, const Normals& normals, std::mt19937& rng, const F& f) {
  s.pool = PoolOf(s.sequences, s.page_tokens);
  for (const CacheDType cache : kGridCaches) {
    s.cache = cache;
    SCOPED_TRACE(Describe(s));
    DecodeCase c(s, rng, normals);
    f(c, s);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void ExpectCaseWithinGrid(const DecodeShape& s, const Normals& normals, std::mt19937& rng) {
  ForEachGridCache(s, normals, rng, [](DecodeCase& c, const DecodeShape& shape) {
    ExpectEveryRowWithinGrid(c, shape);
  });
}

// Every GridShare-th of the cases.
template <class F>
void ForEachCase(const std::vector<Combination>& cases, const F& f) {
  for (size_t i = 0; i < cases.size(); i += GridShare()) {
    f(cases[i]);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// FlashMLA's test of dense decoding. Its normally distributed lengths are cut at twice the mean.
constexpr int64_t kBatches[] = {1, 2, 6, 64};
constexpr int64_t kQueryLens[] = {1, 2, 4};
constexpr int64_t kLens[] = {20, 140, 4096};
constexpr int64_t kHeads[] = {1, 3, 9, 63, 64, 126, 128};
enum { kBatch, kQueryLen, kLen, kHead, kVaried, kPage, kLatent };

std::vector<SequenceShape> SequencesOf(const Combination& c, std::mt19937& rng) {
  const int64_t query_len = kQueryLens[c[kQueryLen]];
  const int64_t len = kLens[c[kLen]];
  std::normal_distribution<double> normal(static_cast<double>(len), static_cast<double>(len) / 2);
  std::vector<SequenceShape> out;
  for (int64_t i = 0; i < kBatches[c[kBatch]]; ++i) {
    const auto varied = static_cast<int64_t>(normal(rng));
    out.push_back({query_len, c[kVaried] == 1 ? std::clamp(varied, query_len, 2 * len) : len});
  }
  return out;
}

TEST(MlaDecodeGrid, DenseDecodingOfFlashMla) {
  const std::vector<size_t> counts = {
      std::size(kBatches), std::size(kQueryLens), std::size(kLens), std::size(kHeads), 2,
      std::size(kPages),   std::size(kLatents)};
  const std::vector<Combination> cases = CoverPairs(counts, [](const Combination& c) {
    return kBatches[c[kBatch]] * kQueryLens[c[kQueryLen]] * kLens[c[kLen]] * kHeads[c[kHead]] <=
           kMostScores;
  });
  ASSERT_EQ(CountPairs(counts, cases), AllPairs(counts));
  const Normals normals;
  std::mt19937 rng(21);
  ForEachCase(cases, [&](const Combination& c) {
    const Latent latent = kLatents[c[kLatent]];
    const DecodeShape s = {kHeads[c[kHead]], latent.c,        latent.r,           kPages[c[kPage]],
                           CacheDType(),     ScaleOf(latent), SequencesOf(c, rng)};
    ExpectCaseWithinGrid(s, normals, rng);
  });
}

// FlashInfer's lengths. A sequence without tokens has no queries. FlashInfer's pages of one token
// are not supported here.
constexpr int64_t kKvLens[] = {0, 1, 3, 11, 17, 33, 96, 97, 114, 514, 1024, 8736};
constexpr int64_t kQoLens[] = {1, 3, 5, 7, 9, 11, 13, 15, 17};
constexpr int64_t kFlashInferHeads[] = {16, 64};

TEST(MlaDecodeGrid, LengthsOfFlashInfer) {
  const std::vector<size_t> counts = {std::size(kKvLens), std::size(kQoLens),
                                      std::size(kFlashInferHeads), 2};
  const auto scores = [](const Combination& c) {
    return kKvLens[c[0]] * kQoLens[c[1]] * kFlashInferHeads[c[2]];
  };
  const std::vector<Combination> cases = CoverPairs(
      counts, [&](const Combination& c) { return c[2] == 0 || scores(c) <= kMostScores; });
  ASSERT_EQ(CountPairs(counts, cases), AllPairs(counts));
  const Normals normals;
  std::mt19937 rng(22);
  ForEachCase(cases, [&](const Combination& c) {
    const int64_t kv_len = kKvLens[c[0]];
    const int64_t qo_len = std::min(kQoLens[c[1]], kv_len);
    // The largest cases use fewer heads.
    const int64_t most = kMostScores / 4 / std::max<int64_t>(kv_len * qo_len, 1);
    const int64_t heads = c[2] == 0 ? std::min(kFlashInferHeads[0], most) : kFlashInferHeads[1];
    const int64_t page_tokens = c[3] == 0 ? 16 : 32;
    // A second sequence always has a query.
    const DecodeShape s = {heads,
                           512,
                           64,
                           page_tokens,
                           CacheDType(),
                           ScaleOf(kLatents[0]),
                           {{qo_len, kv_len}, {1, 17}}};
    ExpectCaseWithinGrid(s, normals, rng);
  });
}

// FlashMLA's corner case: 128 sequences of up to 4096 tokens, half of them empty. A token attends
// at least to itself, so an empty sequence is one without queries: it has no page or, every other
// time, cached tokens that no query attends to. Each sequence alone gives the same bits.
TEST(MlaDecodeGrid, HalfOf128SequencesAreEmpty) {
  const Normals normals;
  std::mt19937 rng(23);
  DecodeShape s = {1, 512, 64, 64, CacheDType(), ScaleOf(kLatents[0]), {}};
  const auto count = static_cast<int64_t>(128 / GridShare());
  for (int64_t i = 0; i < count; ++i) {
    if (rng() % 2 == 0)
      s.sequences.push_back({0, i % 2 == 0 ? 0 : 300});
    else
      s.sequences.push_back({2, i % 3 == 0 ? 4096 : static_cast<int64_t>(2 + rng() % 4095)});
  }
  ForEachGridCache(s, normals, rng, [&](DecodeCase& c, const DecodeShape& shape) {
    ExpectEveryRowWithinGrid(c, shape);
    ForEachFastKernel<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
      RunKernel(kernel, c.Params(), 2);
      for (size_t i = 0; i < c.sequences.size(); i += 9) {
        SequenceChunk sequence = c.sequences[i];
        const int64_t begin = std::exchange(sequence.query_start, 0);
        const int64_t end = begin + sequence.count;
        MlaDecodeOp::Params p = c.Params();
        const Tensor o(DType::kF32, {end - begin, s.heads, s.c});
        for (TensorView* q : {&p.q_latent, &p.q_rope}) *q = q->Slice(0, begin, end);
        p.o_latent = o;
        p.lse = TensorView();
        p.sequences = {&sequence, 1};
        RunKernel(kernel, p);
        ASSERT_TRUE(SameBits(c.o.view().Slice(0, begin, end), o)) << "sequence " << i;
      }
    });
  });
}

}  // namespace
}  // namespace latte::mla_decode_grid_test
