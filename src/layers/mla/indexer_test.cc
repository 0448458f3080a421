#include "src/layers/mla/indexer.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "src/cache/latent_cache.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte::indexer_test {
namespace {

constexpr int64_t kD = 48, kCq = 24, kTokens = 300, kPageTokens = 16;
constexpr IndexerDims kDims = {.heads = 4, .width = 64, .topk = 20};

Tensor Random(std::vector<int64_t> shape, std::mt19937& rng) {
  Tensor out(DType::kF32, shape);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < out.view().elements(); ++i) out.Ptr<float>()[i] = normal(rng);
  return out;
}

// The keys that each token chooses with a cache of latents of type `cache`. One number of each key
// is much larger than the others.
class IndexerTest : public testing::Test {
 protected:
  std::vector<std::set<int32_t>> Choose(CacheDType cache_dtype) {
    std::mt19937 rng(5);
    const Tensor w_q = Random({kDims.heads * kDims.width, kCq}, rng);
    const Tensor w_k = Random({kDims.width, kD}, rng);
    const Tensor w_weights = Random({kDims.heads, kD}, rng);
    Tensor norm = Random({kDims.width}, rng);
    const Tensor bias = Random({kDims.width}, rng);
    norm.Ptr<float>()[kDims.width - 1] = 300;
    const Tensor x = Random({kTokens, kD}, rng);
    const Tensor c_q = Random({kTokens, kCq}, rng);
    Indexer indexer;
    indexer.dims = kDims;
    indexer.w_q.matrix.weight = w_q;
    indexer.w_k.matrix.weight = w_k;
    indexer.w_weights.matrix.weight = w_weights;
    indexer.k_norm = {norm, bias};
    indexer.hadamard = HadamardMatrix(kDims.width);

    LatentCache cache = *LatentCache::Create(
        {{IndexerCacheStream(kDims, cache_dtype)}, 1, kPageTokens}, CeilDiv(kTokens, kPageTokens));
    std::vector<int32_t> pages(static_cast<size_t>(cache.pages()));
    std::iota(pages.rbegin(), pages.rend(), 0);
    std::vector<int64_t> slots;
    for (int64_t t = 0; t < kTokens; ++t)
      slots.push_back(pages[static_cast<size_t>(t / kPageTokens)] * kPageTokens + t % kPageTokens);
    const SequenceChunk sequence{.count = kTokens, .path = MlaPath::kSparse, .pages = pages};
    StepContext step;
    step.arithmetic = DType::kF32;
    step.slots = slots;
    step.cache = &cache;
    step.workspace = &workspace_;
    step.exec = {&threads_, &machine_};
    const Tensor lists(DType::kI32, {kTokens, kDims.topk});
    step.key_positions = lists;
    const RopeConfig no_rotation = {.rotate = false};
    const Tensor angles(DType::kF32, {kTokens, 4});
    const RopeAngles no_angles = {angles, angles};
    const IndexerInputs in = {0, no_rotation, no_angles, c_q, x};
    AppendIndexKeys(indexer, in, step);
    ChooseKeys(indexer, in, {&sequence, 1}, step);
    std::vector<std::set<int32_t>> out;
    for (int64_t t = 0; t < kTokens; ++t) {
      const int32_t* const list = lists.view().Row<int32_t>(t);
      out.emplace_back(list, list + ListLength(lists, t));
    }
    return out;
  }

 private:
  Workspace workspace_;
  ThreadPool threads_{2};
  Machine machine_ = *Machine::Detect();
};

// The part of all chosen keys that both chose, of tokens that have more keys than they choose.
double Overlap(const std::vector<std::set<int32_t>>& a, const std::vector<std::set<int32_t>>& b) {
  double both = 0;
  for (size_t t = kDims.topk; t < a.size(); ++t)
    both += static_cast<double>(
        std::ranges::count_if(a[t], [&](int32_t key) { return b[t].contains(key); }));
  return both / static_cast<double>((a.size() - kDims.topk) * kDims.topk);
}

TEST_F(IndexerTest, CachesOfAllTypesChooseNearlyTheSameKeys) {
  const auto exact = Choose(CacheDType::Plain(DType::kF32));
  for (size_t t = 0; t < exact.size(); ++t)
    ASSERT_EQ(exact[t].size(), std::min<size_t>(t + 1, kDims.topk));
  EXPECT_GT(Overlap(exact, Choose(CacheDType::Plain(DType::kBF16))), 0.97);
  const CacheDType f8 = {DType::kU8, CacheFormat::kF8};
  EXPECT_GT(Overlap(exact, Choose(f8)), 0.9);
}

TEST(HadamardMatrix, RowsAreOrthogonalAndOfOneLength) {
  for (const int64_t width : {1, 2, 8, 128}) {
    const Tensor h = HadamardMatrix(width);
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = 0; j < width; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < width; ++k)
          sum += LoadElement(h.view().data, h.view().dtype, i * width + k) *
                 LoadElement(h.view().data, h.view().dtype, j * width + k);
        const float length = width == 2 || width == 8 || width == 128 ? 2 : 1;
        EXPECT_EQ(sum, i == j ? length : 0) << width;
      }
  }
  EXPECT_TRUE(HadamardMatrix(24).view().empty());
}

}  // namespace
}  // namespace latte::indexer_test
