// index_topk: kernels against the reference, and the reference against the definition. Inputs that
// are small integers make every sum exact, so that all kernels must list the same positions, equal
// scores included. Unused rows of pages are NaN.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/conformance/support/attention_case.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::index_topk_test {
namespace {

using OpKernel = Kernel<IndexTopKOp>;
using List = std::vector<int32_t>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr CacheDType kF32 = CacheDType::Plain(DType::kF32);
constexpr CacheDType kBF16 = CacheDType::Plain(DType::kBF16);
constexpr CacheDType kF16 = CacheDType::Plain(DType::kF16);
constexpr CacheDType kF8 = {DType::kU8, CacheFormat::kF8};

// Exact in every dtype of a cache, as are sums of their products.
void FillIntegers(const TensorView& t, std::mt19937& rng) {
  for (int64_t i = 0; i < t.shape[0]; ++i)
    for (int64_t j = 0; j < (t.rank > 1 ? t.shape[1] : 1); ++j)
      for (int64_t k = 0; k < (t.rank > 2 ? t.shape[2] : 1); ++k) {
        const auto value = static_cast<float>(static_cast<int>(rng() % 5) - 2);
        std::byte* at =
            t.data + (i * t.stride[0] + j * t.stride[1] + k * t.stride[2]) * SizeOf(t.dtype);
        if (t.dtype == DType::kF32) {
          std::memcpy(at, &value, 4);
        } else {
          const uint16_t bits = FloatTo16(value, t.dtype);
          std::memcpy(at, &bits, 2);
        }
      }
}

DecodeShape ShapeOf(int64_t heads, int64_t width, int64_t page_tokens, CacheDType cache,
                    std::vector<SequenceShape> sequences) {
  return {heads, width, 0, page_tokens, cache, 1.0f, std::move(sequences)};
}

// Queries, weights, keys and lists. The keys are the latents of a DecodeCase without rope part.
struct IndexCase {
  IndexCase(DecodeShape s, int64_t k, std::mt19937& rng, const Draw& draw)
      : shape(std::move(s)),
        keys(shape, rng, draw),
        weights(DType::kF32, {keys.q_latent.view().shape[0], shape.heads}, 3),
        positions(DType::kI32, {keys.q_latent.view().shape[0], k}) {
    draw(weights, rng);
  }
  IndexTopKOp::Params Params() const {
    IndexTopKOp::Params p;
    p.q = keys.q_latent;
    p.weights = weights;
    p.pages = keys.pages;
    p.sequences = keys.sequences;
    p.positions = positions;
    p.row_format = keys.Format();
    return p;
  }
  DecodeShape shape;  // of keys, which refers to it
  DecodeCase keys;
  Guarded weights, positions;
};

std::vector<std::byte> RunLists(const OpKernel& kernel, const IndexCase& c, int threads = 1) {
  std::memset(c.positions.view().data, 0x7f,
              static_cast<size_t>(c.positions.view().elements() * SizeOf(DType::kI32)));
  RunKernel(kernel, c.Params(), threads);
  return c.positions.Bytes();
}

std::string Describe(const IndexCase& c) {
  const IndexTopKOp::Shape s = IndexTopKOp::ShapeOf(c.Params());
  return fmt::format("{} tokens, {} heads of {}, K {}, pages of {}, {} {}", s.t, s.h, s.w, s.k,
                     s.page_tokens, Name(s.cache), static_cast<int>(s.kind));
}

void ExpectListsOfReference(const IndexCase& c) {
  SCOPED_TRACE(Describe(c));
  const std::vector<std::byte> want = RunLists(Kernels<IndexTopKOp>().front(), c);
  ForEachFastKernel<IndexTopKOp>(IndexTopKOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
    for (const int threads : ThreadCounts(kernel))
      EXPECT_TRUE(RunLists(kernel, c, threads) == want) << threads;
  });
}

// Lengths around blocks of 64 keys, K and ranges of 1024 keys; one token with many keys is cut into
// ranges, many tokens are not.
TEST(IndexTopK, ExactInputsGiveTheListsOfTheReference) {
  std::mt19937 rng(41);
  const std::vector<DecodeShape> shapes = {
      ShapeOf(64, 128, 64, kBF16, {{1, 200}, {9, 65}, {1, 1}}),
      ShapeOf(3, 24, 16, kF32, {{1, 64}, {17, 130}, {5, 5}, {1, 63}}),
      ShapeOf(5, 33, 16, kF16, {{8, 129}, {1, 40}}),
      ShapeOf(1, 1, 16, kBF16, {{3, 300}, {1, 17}}),
      ShapeOf(32, 128, 128, kF8, {{2, 300}, {1, 64}, {11, 11}}),
      ShapeOf(7, 130, 64, kF8, {{1, 190}}),
      ShapeOf(13, 512, 32, kBF16, {{2, 100}}),
      ShapeOf(6, 16, 64, kF32, {{1, 5000}, {1, 3}}),
      ShapeOf(2, 8, 16, kBF16, {{3, 9000}, {70, 1100}}),
  };
  for (const DecodeShape& shape : shapes)
    for (const int64_t k : {1, 4, 63, 64, 65, 128, 129, 1000})
      ExpectListsOfReference(IndexCase(shape, k, rng, FillIntegers));
}

// Exact scores: kernels give the bytes of the reference, also where a token takes all of its keys.
TEST(IndexTopK, ScoresOfTheListedKeysAreWrittenIfWanted) {
  std::mt19937 rng(48);
  const std::vector<DecodeShape> shapes = {
      ShapeOf(3, 24, 16, kF32, {{1, 64}, {17, 130}, {5, 5}, {1, 63}}),
      ShapeOf(2, 8, 16, kBF16, {{3, 9000}}),
      ShapeOf(32, 128, 128, kF8, {{2, 300}, {11, 11}}),
  };
  for (const DecodeShape& shape : shapes)
    for (const int64_t k : {1, 64, 1000}) {
      const IndexCase c(shape, k, rng, FillIntegers);
      SCOPED_TRACE(Describe(c));
      const Guarded scores(DType::kF32, {c.positions.view().shape[0], k});
      IndexTopKOp::Params p = c.Params();
      p.scores = scores;
      const std::vector<std::byte> lists = RunLists(Kernels<IndexTopKOp>().front(), c);
      RunRef<IndexTopKOp>(p);
      EXPECT_TRUE(c.positions.Bytes() == lists);
      const std::vector<std::byte> want = scores.Bytes();
      ForEachFastKernel<IndexTopKOp>(IndexTopKOp::ShapeOf(p), [&](const OpKernel& kernel) {
        if (kernel.isa.family == IsaFamily::kCuda) return;
        for (const int threads : {1, 3}) {
          std::memset(scores.view().data, 0x7f, want.size());
          RunKernel(kernel, p, threads);
          EXPECT_TRUE(c.positions.Bytes() == lists) << threads;
          EXPECT_TRUE(scores.Bytes() == want) << threads;
        }
      });
    }
}

// A token none of whose keys are here, as on one of several ranks.
TEST(IndexTopK, ATokenWithoutKeysHasAnEmptyList) {
  Tensor q(DType::kF32, {1, 1, 1});
  Tensor weights(DType::kF32, {1, 1});
  Tensor pages(DType::kF32, {1, 16, 1});
  ForEachKernel<IndexTopKOp>([&](const OpKernel& kernel) {
    if (kernel.isa.family == IsaFamily::kCuda) return;
    std::vector<int32_t> positions(3, 7);
    std::vector<float> scores(3, 7);
    const SequenceChunk sequence{.count = 1, .cached_len = -1};
    IndexTopKOp::Params p;
    p.q = q, p.weights = weights, p.pages = pages;
    p.sequences = {&sequence, 1};
    p.positions = TensorView(positions.data(), DType::kI32, {1, 3});
    p.scores = TensorView(scores.data(), DType::kF32, {1, 3});
    RunKernel(kernel, p);
    EXPECT_EQ(positions, (List{-1, -1, -1}));
    EXPECT_EQ(scores, (std::vector<float>{0, 0, 0}));
  });
}

// More keys than a GPU keeps scores of in the memory that a block shares.
TEST(IndexTopK, FarMoreKeysThanTheListHolds) {
  std::mt19937 rng(47);
  const IndexCase c(ShapeOf(1, 2, 256, kBF16, {{1, 49220}}), 3, rng, FillIntegers);
  const std::vector<std::byte> want = RunLists(Kernels<IndexTopKOp>().front(), c);
  ForEachFastKernel<IndexTopKOp>(IndexTopKOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
    EXPECT_TRUE(RunLists(kernel, c) == want);
  });
}

// The definition, written once more with scores of its own.
TEST(IndexTopK, ListsTheHighestScoresInAscendingOrderOfPosition) {
  std::mt19937 rng(42);
  const DecodeShape shape = ShapeOf(3, 20, 16, kF32, {{6, 50}, {3, 3}, {2, 90}});
  constexpr int64_t kK = 7;
  const IndexCase c(shape, kK, rng, FillIntegers);
  ForEachKernel<IndexTopKOp>([&](const OpKernel& kernel) {
    RunLists(kernel, c);
    for (size_t i = 0; i < c.keys.sequences.size(); ++i) {
      const SequenceChunk& s = c.keys.sequences[i];
      for (int64_t token = 0; token < s.count; ++token) {
        const int64_t t = s.query_start + token;
        std::vector<std::pair<float, int32_t>> ranked;  // −score, position
        for (int64_t key = 0; key <= s.cached_len + token; ++key) {
          float score = 0;
          for (int64_t h = 0; h < shape.heads; ++h) {
            float dot = 0;
            for (int64_t w = 0; w < shape.c; ++w)
              dot += GetValue(c.keys.q_latent, t, h, w) * GetValue(c.keys.Row(i, key), w);
            score += GetValue(c.weights, t, h) * std::max(dot, 0.0f);
          }
          ranked.emplace_back(-score, static_cast<int32_t>(key));
        }
        std::ranges::sort(ranked);
        List want;
        for (const auto& [score, key] : ranked)
          if (std::ssize(want) < kK) want.push_back(key);
        std::ranges::sort(want);
        want.resize(kK, -1);
        const int32_t* const got = c.positions.view().Row<int32_t>(t);
        EXPECT_EQ(List(got, got + kK), want) << "sequence " << i << ", token " << token;
      }
    }
  });
}

// One token, one head of width 1 and one page: the score of key j is weight · max(keys[j], 0).
List ListFor(const OpKernel& kernel, float weight, const std::vector<float>& keys, int64_t k,
             float query = 1) {
  const auto count = static_cast<int64_t>(keys.size());
  Tensor q(DType::kF32, {1, 1, 1});
  Tensor weights(DType::kF32, {1, 1});
  q.Ptr<float>()[0] = query;
  weights.Ptr<float>()[0] = weight;
  Tensor pages(DType::kF32, {1, RoundUp(count, int64_t{16}), 1});
  std::ranges::copy(keys, pages.Ptr<float>());
  Tensor positions(DType::kI32, {1, k});
  const std::vector<int32_t> table = {0};
  const SequenceChunk sequence{.count = 1, .cached_len = count - 1, .pages = table};
  RunKernel<IndexTopKOp>(kernel, {q, weights, pages, {&sequence, 1}, positions});
  return {positions.Ptr<int32_t>(), positions.Ptr<int32_t>() + k};
}

TEST(IndexTopK, OfEqualScoresTheLowerPositionIsBetter) {
  ForEachKernel<IndexTopKOp>([](const OpKernel& kernel) {
    EXPECT_EQ(ListFor(kernel, 1, {5, 5, 5, 5}, 2), (List{0, 1}));
    EXPECT_EQ(ListFor(kernel, 1, {1, 5, 2, 5, 5}, 2), (List{1, 3}));
    // Negative products count as 0: equal to each other, and better than what a negative weight
    // gives.
    EXPECT_EQ(ListFor(kernel, 1, {-7, -1, 3, -2}, 3), (List{0, 1, 2}));
    EXPECT_EQ(ListFor(kernel, -1, {4, -1, 3, -2, -9}, 2), (List{1, 3}));
    EXPECT_EQ(ListFor(kernel, -1, {4, 3, 2, 1, 9}, 2), (List{2, 3}));
    EXPECT_EQ(ListFor(kernel, 0, {4, 3, 2, 1, 9}, 3), (List{0, 1, 2}));
  });
}

// A score underflows to −0 where weights are tiny; a kernel that ranks the bits of floats would put
// it behind +0.
TEST(IndexTopK, BothZerosAreEqual) {
  ForEachKernel<IndexTopKOp>([](const OpKernel& kernel) {
    EXPECT_EQ(ListFor(kernel, -1e-30f, {1e-30f, 1e-30f, 0, -1, 0}, 2), (List{0, 1}));
  });
}

TEST(IndexTopK, NaNIsTheWorstScore) {
  ForEachKernel<IndexTopKOp>([](const OpKernel& kernel) {
    // max(NaN, 0) is 0.
    EXPECT_EQ(ListFor(kernel, 1, {kNaN, 2, kNaN, 3, 0}, 3), (List{0, 1, 3}));
    EXPECT_EQ(ListFor(kernel, -1, {1, kNaN, 3, 4, 5}, 2), (List{0, 1}));
    EXPECT_EQ(ListFor(kernel, kNaN, {1, 2, 3, 4}, 2), (List{0, 1}));
    EXPECT_EQ(ListFor(kernel, 1, {1, kInfinity, 3, 4}, 2), (List{1, 3}));
    // −inf · 0 is NaN, worse than no finite score and equal to −inf · 1.
    EXPECT_EQ(ListFor(kernel, -kInfinity, {1, -1, 3, -4}, 2), (List{0, 1}));
    EXPECT_EQ(ListFor(kernel, 1, {1, 2, 3, 4}, 2, kNaN), (List{0, 1}));
  });
}

// Rising scores replace all candidates again and again; falling ones never.
TEST(IndexTopK, SortedScores) {
  std::vector<float> rising(3000);
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<float>(i);
  const std::vector<float> falling(rising.rbegin(), rising.rend());
  ForEachKernel<IndexTopKOp>([&](const OpKernel& kernel) {
    for (const int32_t k : {1, 2, 63, 64, 100, 2999, 3000}) {
      List last(static_cast<size_t>(k));
      List first = last;
      for (int32_t i = 0; i < k; ++i) {
        first[static_cast<size_t>(i)] = i;
        last[static_cast<size_t>(i)] = 3000 - k + i;
      }
      EXPECT_EQ(ListFor(kernel, 1, rising, k), last) << k;
      EXPECT_EQ(ListFor(kernel, 1, falling, k), first) << k;
      EXPECT_EQ(ListFor(kernel, -1, rising, k), first) << k;
    }
  });
}

// A token with at most K keys takes all of them, whatever they are.
TEST(IndexTopK, FewKeysAreNotRead) {
  std::mt19937 rng(43);
  const DecodeShape shape = ShapeOf(4, 32, 16, kBF16, {{20, 20}, {1, 16}, {2, 32}});
  IndexCase c(shape, 32, rng, FillRandom);
  c.keys.pages.Poison();
  ForEachKernel<IndexTopKOp>([&](const OpKernel& kernel) {
    RunLists(kernel, c);
    for (const SequenceChunk& s : c.keys.sequences)
      for (int64_t i = 0; i < s.count; ++i)
        for (int32_t j = 0; j < 32; ++j)
          ASSERT_EQ(c.positions.view().Row<int32_t>(s.query_start + i)[j],
                    j <= s.cached_len + i ? j : -1);
  });
}

// The score of a key in f64, and a bound on a kernel's error: per head a chain of `width` products,
// one product and sum for each head.
struct Scored {
  double score, error;
};
Scored ScoreOf(const IndexCase& c, const TensorView& keys, int64_t t, int64_t key) {
  const IndexTopKOp::Shape s = IndexTopKOp::ShapeOf(c.Params());
  double score = 0, magnitude = 0;
  for (int64_t h = 0; h < s.h; ++h) {
    double dot = 0, sum = 0;
    for (int64_t w = 0; w < s.w; ++w) {
      const double product = static_cast<double>(GetValue(c.keys.q_latent, t, h, w)) *
                             static_cast<double>(GetValue(keys, key, w));
      dot += product;
      sum += std::abs(product);
    }
    const double weight = GetValue(c.weights, t, h);
    score += weight * std::max(dot, 0.0);
    magnitude += std::abs(weight) * sum;
  }
  return {score, Gamma(s.w + s.h + 2) * magnitude + kTiny};
}

// No key that is left out is better than a listed one by more than rounding.
void ExpectBestWithinRounding(const IndexCase& c, size_t sequence) {
  const SequenceChunk& s = c.keys.sequences[sequence];
  const int64_t width = c.keys.q_latent.view().shape[2];
  const int64_t k = c.positions.view().shape[1];
  const Tensor keys(DType::kF32, {s.total_len(), width});
  ref::GatherPages({c.keys.pages, s.pages, 0, keys, width, c.keys.Format()},
                   Exec{&TestPool(1), &TestMachine()});
  for (int64_t i = 0; i < s.count; ++i) {
    const std::span<const int32_t> list = ListOf(c.positions, s.query_start + i, s.cached_len + i);
    ASSERT_EQ(std::ssize(list), std::min(k, s.cached_len + i + 1));
    double worst_listed = kInfinity;
    double best_other = -kInfinity;
    for (int64_t key = 0; key <= s.cached_len + i; ++key) {
      const Scored scored = ScoreOf(c, keys, s.query_start + i, key);
      if (std::ranges::binary_search(list, static_cast<int32_t>(key)))
        worst_listed = std::min(worst_listed, scored.score + scored.error);
      else
        best_other = std::max(best_other, scored.score - scored.error);
    }
    ASSERT_GE(worst_listed, best_other) << "token " << i << " of sequence " << sequence;
  }
}

TEST(IndexTopK, RandomInputsGiveTheBestKeysWithinRounding) {
  std::mt19937 rng(44);
  for (const CacheDType cache : {kF32, kBF16, kF16, kF8}) {
    const DecodeShape shape = ShapeOf(9, 128, 64, cache, {{3, 700}, {10, 70}, {1, 2100}});
    const IndexCase c(shape, 33, rng, FillRandom);
    ForEachKernel<IndexTopKOp>([&](const OpKernel& kernel) {
      if (!kernel.supports(IndexTopKOp::ShapeOf(c.Params()))) return;
      for (const int threads : {1, 3}) {
        RunLists(kernel, c, threads);
        for (size_t i = 0; i < c.keys.sequences.size(); ++i) ExpectBestWithinRounding(c, i);
      }
    });
  }
}

// A token alone gives the list that it gets in a chunk, and threads change nothing.
TEST(IndexTopK, ChunksAndThreadsDoNotMatter) {
  std::mt19937 rng(45);
  const DecodeShape shape = ShapeOf(5, 40, 16, kBF16, {{1, 40}, {11, 2500}, {6, 80}});
  const IndexCase c(shape, 64, rng, FillRandom);
  ForEachKernel<IndexTopKOp>([&](const OpKernel& kernel) {
    const std::vector<std::byte> whole = RunLists(kernel, c, 1);
    EXPECT_TRUE(RunLists(kernel, c, 2) == whole);
    EXPECT_TRUE(RunLists(kernel, c, 3) == whole);
    for (const SequenceChunk& sequence : c.keys.sequences)
      for (int64_t i = 0; i < sequence.count; ++i) {
        const int64_t t = sequence.query_start + i;
        SequenceChunk one = sequence;
        one.query_start = t;
        one.cached_len += i;
        one.count = 1;
        IndexTopKOp::Params p = c.Params();
        for (TensorView* x : {&p.q, &p.weights}) *x = x->Slice(0, t, t + 1);
        p.sequences = {&one, 1};
        const Guarded list(DType::kI32, {1, 64});
        p.positions = list;
        RunKernel(kernel, p, 2);
        const int32_t* const want = c.positions.view().Row<int32_t>(t);
        EXPECT_TRUE(std::equal(want, want + 64, list.view().Row<int32_t>(0))) << "token " << t;
      }
  });
}

// Kernels of one order give the same lists even where scores are rounded.
TEST(IndexTopK, KernelsOfOneOrderGiveTheSameLists) {
  std::mt19937 rng(46);
  const IndexCase c(ShapeOf(64, 128, 64, kBF16, {{2, 3000}, {20, 200}}), 100, rng, FillRandom);
  std::map<std::string_view, std::vector<std::byte>> by_order;
  ForEachFastKernel<IndexTopKOp>(IndexTopKOp::ShapeOf(c.Params()), [&](const OpKernel& kernel) {
    const auto [first, is_new] = by_order.emplace(kernel.order, RunLists(kernel, c, 2));
    EXPECT_TRUE(is_new || RunLists(kernel, c, 3) == first->second);
  });
}

}  // namespace
}  // namespace latte::index_topk_test
