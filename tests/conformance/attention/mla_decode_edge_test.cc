// mla_decode at the edges: lengths around pages and splits, pages that sequences share, scores of
// 10⁴, zero caches and queries. The tolerances are FlashMLA's.
#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/decode_grid.h"

namespace latte::mla_decode_edge_test {
namespace {

using OpKernel = DecodeKernel;

constexpr CacheDType kCaches[] = {
    CacheDType::Plain(DType::kF32),      CacheDType::Plain(DType::kF16),
    CacheDType::Plain(DType::kBF16),     {DType::kU8, CacheFormat::kF8},
    {DType::kU8, CacheFormat::kF8Dense}, {DType::kU8, CacheFormat::kI8},
    {DType::kU8, CacheFormat::kQ6},
};
// The reference evaluates every pair.
constexpr int64_t kAllPairs = int64_t{1} << 40;

template <class F>
void ForEachCache(DecodeShape s, const F& f) {
  for (const CacheDType cache : kCaches) {
    s.cache = cache;
    SCOPED_TRACE(Describe(s));
    f(s);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

template <class F>
void ForEachFastKernelOf(const DecodeCase& c, const F& f) {
  ForEachFastKernel<MlaDecodeOp>(MlaDecodeOp::ShapeOf(c.Params()), f);
}

// Lengths one below, equal to and one above a page, a block and a split of 1024, and sequences with
// as many queries as keys, the maximum: a token attends at least to itself.
std::vector<SequenceShape> LengthsAround(int64_t page_tokens, int64_t query_len) {
  std::vector<SequenceShape> out = {{1, 1}, {17, 17}, {65, 65}};
  for (const int64_t edge : {page_tokens, 2 * page_tokens, int64_t{64}, int64_t{1024}})
    for (const int64_t length : {edge - 1, edge, edge + 1}) out.push_back({query_len, length});
  return out;
}

TEST(MlaDecodeEdge, LengthsAroundPagesAndSplits) {
  const Normals normals;
  std::mt19937 rng(31);
  size_t turn = 0;
  for (const int64_t page_tokens : {16, 32, 64, 128, 256})
    for (const int64_t query_len : {1, 3})
      ForEachCache(
          {5, 64, 64, page_tokens, CacheDType(), 0.09f, LengthsAround(page_tokens, query_len)},
          [&](const DecodeShape& s) {
            if (!IsRun(turn++, 0, 7)) return;
            DecodeCase c(s, rng, normals);
            ExpectEveryRowWithinGrid(c, s, kAllPairs);
          });
}

// Each thread takes consecutive splits of the six. The first two of three tokens attend to nothing
// in the last split.
TEST(MlaDecodeEdge, SplitsOfALoneSequence) {
  const Normals normals;
  std::mt19937 rng(33);
  for (const int64_t query_len : {1, 3})
    ForEachCache({5, 64, 64, 64, CacheDType(), 0.09f, {{query_len, 5121}}},
                 [&](const DecodeShape& s) {
                   DecodeCase c(s, rng, normals);
                   ExpectEveryRowWithinGrid(c, s, kAllPairs);
                   ForEachFastKernelOf(
                       c, [&](const OpKernel& kernel) { ExpectSameBitsEachRun(kernel, c, 2); });
                 });
}

// A copy of a case's pages in which no page is shared.
struct OwnPages {
  explicit OwnPages(const DecodeCase& c) : sequences(c.sequences) {
    const TensorView& from = c.pages;
    int64_t count = 0;
    for (const SequenceChunk& s : c.sequences) count += std::ssize(s.pages);
    pages = Tensor(from.dtype, {count, from.shape[1], from.shape[2]});
    const int64_t bytes = from.shape[1] * from.shape[2] * SizeOf(from.dtype);
    tables.resize(sequences.size());
    int32_t next = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      for (const int32_t page : c.sequences[i].pages) {
        std::memcpy(pages.view().data + next * bytes, from.data + page * bytes,
                    static_cast<size_t>(bytes));
        tables[i].push_back(next++);
      }
      sequences[i].pages = tables[i];
    }
  }
  Tensor pages;
  std::vector<std::vector<int32_t>> tables;
  std::vector<SequenceChunk> sequences;
};

TEST(MlaDecodeEdge, SequencesThatSharePages) {
  const Normals normals;
  std::mt19937 rng(32);
  DecodeShape shape = {9, 512, 64, 32, CacheDType(), 0.04f, {{1, 200}, {2, 170}, {1, 97}}};
  shape.pool = 6;
  ForEachCache(shape, [&](const DecodeShape& s) {
    DecodeCase c(s, rng, normals);
    ExpectEveryRowWithinGrid(c, s, kAllPairs);
    const OwnPages own(c);
    ForEachFastKernelOf(c, [&](const OpKernel& kernel) {
      RunKernel(kernel, c.Params(), 2);
      MlaDecodeOp::Params p = c.Params();
      const Tensor o(DType::kF32, {4, s.heads, s.c});
      const Tensor lse(DType::kF32, {4, s.heads});
      p.pages = own.pages;
      p.sequences = own.sequences;
      p.o_latent = o;
      p.lse = lse;
      RunKernel(kernel, p, 2);
      ASSERT_TRUE(SameBits(c.o, o));
      ASSERT_TRUE(SameBits(c.lse, lse));
    });
  });
}

TEST(MlaDecodeEdge, TwentyRunsGiveTheSameBits) {
  const Normals normals;
  std::mt19937 rng(33);
  const int runs = 20 / static_cast<int>(GridShare());
  ForEachCache({16, 512, 64, 64, CacheDType(), 0.04f, {{1, 2100}, {2, 1025}, {1, 65}}},
               [&](const DecodeShape& s) {
                 DecodeCase c(s, rng, normals);
                 ForEachFastKernelOf(
                     c, [&](const OpKernel& kernel) { ExpectSameBitsEachRun(kernel, c, runs); });
               });
}

// The keys that a token attends to, for the rows of a call.
int64_t KeysOf(const DecodeCase& c, int64_t token) {
  for (const SequenceChunk& s : c.sequences)
    if (token < s.query_start + s.count) return s.total_len() - s.count + 1 + token - s.query_start;
  return 0;
}

// All scores are zero.
void ExpectLseOfZeros(const DecodeCase& c) {
  const TensorView lse = c.lse;
  for (int64_t t = 0; t < lse.shape[0]; ++t)
    for (int64_t h = 0; h < lse.shape[1]; ++h) {
      const double want = std::log(static_cast<double>(KeysOf(c, t)));
      ASSERT_NEAR(static_cast<double>(GetValue(lse, t, h)), want, kDecodeGrid.lse.Of(want));
    }
}

DecodeShape SomeLengths(float scale) {
  return {5, 512, 64, 64, CacheDType(), scale, {{1, 1}, {3, 140}, {1, 63}, {1, 1030}}};
}

TEST(MlaDecodeEdge, CachesOfZerosGiveZeros) {
  const Normals normals;
  std::mt19937 rng(34);
  // Cached rows have rank 1.
  const auto draw = [&](const TensorView& t, std::mt19937& g) {
    if (t.rank == 1)
      std::memset(t.data, 0, static_cast<size_t>(t.shape[0] * SizeOf(t.dtype)));
    else
      normals(t, g);
  };
  ForEachCache(SomeLengths(0.04f), [&](const DecodeShape& s) {
    DecodeCase c(s, rng, draw);
    ForEachFastKernelOf(c, [&](const OpKernel& kernel) {
      c.PoisonOutputs();
      RunKernel(kernel, c.Params(), 2);
      const TensorView o = c.o;
      ASSERT_TRUE(std::all_of(o.Ptr<float>(), o.Ptr<float>() + o.elements(),
                              [](float value) { return value == 0.0f; }));
      ExpectLseOfZeros(c);
    });
  });
}

TEST(MlaDecodeEdge, QueriesOfZerosGiveTheMean) {
  const Normals normals;
  std::mt19937 rng(35);
  ForEachCache(SomeLengths(0.04f), [&](const DecodeShape& s) {
    DecodeCase c(s, rng, normals);
    FillWith(c.q_latent, 0);
    FillWith(c.q_rope, 0);
    ExpectEveryRowWithinGrid(c, s);
  });
}

// All keys have the same rope part and queries have only a rope part: all weights are equal.
TEST(MlaDecodeEdge, EqualScoresOf10000) {
  const Normals normals;
  std::mt19937 rng(36);
  for (const float sign : {1.0f, -1.0f})
    ForEachCache(SomeLengths(10000.0f / 64), [&](const DecodeShape& s) {
      const auto draw = [&](const TensorView& t, std::mt19937& g) {
        normals(t, g);
        if (t.rank > 1) return;
        const TensorView rope = t.Slice(0, s.c, s.c + s.r);
        for (int64_t i = 0; i < s.r; ++i) PutValue(rope, i, 1.0f);
      };
      DecodeCase c(s, rng, draw);
      FillWith(c.q_latent, 0);
      FillWith(c.q_rope, sign);
      ExpectEveryRowWithinGrid(c, s);
    });
}

// The values of a key's row, decoded.
std::vector<float> KeyOf(const DecodeCase& c, const DecodeShape& s, size_t sequence, int64_t key) {
  const TensorView row = c.Row(sequence, key);
  std::vector<float> out(static_cast<size_t>(s.c + s.r));
  if (s.cache.kind != CacheFormat::kPlain)
    ref::DequantiseRow(c.Format(), row.data, s.c, s.r, out.data());
  else
    for (size_t i = 0; i < out.size(); ++i) out[i] = GetValue(row, static_cast<int64_t>(i));
  return out;
}

// Every query equals a key (for head 0 the last one it attends to), whose score is near 10⁴. The
// scores of other keys are smaller by thousands, so the output is that key's latent.
TEST(MlaDecodeEdge, OneScoreOf10000) {
  const Normals normals;
  std::mt19937 rng(37);
  constexpr float kSquares = 5.76f;  // of 576 numbers of N(0, 1)/10
  ForEachCache(SomeLengths(10000.0f / kSquares), [&](const DecodeShape& s) {
    DecodeCase c(s, rng, normals);
    for (size_t i = 0; i < c.sequences.size(); ++i)
      for (int64_t t = 0; t < c.sequences[i].count; ++t)
        for (int64_t h = 0; h < s.heads; ++h) {
          const int64_t token = c.sequences[i].query_start + t;
          const int64_t keys = KeysOf(c, token);
          const int64_t place = h == 0 ? keys - 1 : (7 * token + 977 * h) % keys;
          std::vector<float> key = KeyOf(c, s, i, place);
          for (float& value : key) value = RoundToBF16(value);
          const auto row = [&](const TensorView& q) {
            return q.Ptr<float>() + token * q.stride[0] + h * q.stride[1];
          };
          std::copy_n(key.begin(), s.c, row(c.q_latent));
          std::copy_n(key.begin() + s.c, s.r, row(c.q_rope));
        }
    ExpectEveryRowWithinGrid(c, s);
  });
}

}  // namespace
}  // namespace latte::mla_decode_edge_test
