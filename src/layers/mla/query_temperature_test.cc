// The temperature of queries (Mistral 4) on every path: a query at position p must attend as in a
// layer without temperature whose scale is that of the position.
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "src/kernels/machine.h"
#include "src/layers/mla/mla.h"

namespace latte::query_temperature_test {
namespace {

constexpr MlaDims kDims = {.d = 12, .h = 3, .cq = 8, .c = 8, .n = 5, .r = 4, .v = 6};
constexpr int64_t kPageTokens = 256;
constexpr int64_t kPages = 65;
constexpr double kScale = 0.3;
constexpr double kBeta = 0.1;

class QueryTemperature : public testing::TestWithParam<MlaPath> {
 protected:
  QueryTemperature() : cache_(*LatentCache::Create(Spec(), kPages)) {
    mla_.dims = kDims;
    mla_.rope.original_max = 8192;
    mla_.w_dq = RandomLinear(kDims.cq, kDims.d);
    mla_.w_q = RandomLinear(kDims.h * kDims.qk(), kDims.cq);
    mla_.w_dkv = RandomLinear(kDims.latent(), kDims.d);
    mla_.w_kv_b = RandomLinear(kDims.h * (kDims.n + kDims.v), kDims.c);
    mla_.w_o = RandomLinear(kDims.d, kDims.h * kDims.v);
    mla_.c_q_norm = {RandomTensor({kDims.cq}), 1e-6};
    mla_.c_kv_norm = {RandomTensor({kDims.c}), 1e-6};
    for (const CacheStream& stream : cache_.spec().streams) FillRandomly(cache_.View(stream.id, 0));
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  static CacheSpec Spec() {
    return {MlaCacheStreams(kDims, GetParam(), CacheDType::Plain(DType::kF32)), 1, kPageTokens};
  }

  void FillRandomly(const TensorView& t) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < t.elements(); ++i) t.Ptr<float>()[i] = normal(random_);
  }
  TensorView RandomTensor(std::initializer_list<int64_t> shape) {
    tensors_.emplace_back(DType::kF32, shape);
    FillRandomly(tensors_.back());
    return tensors_.back();
  }
  Linear RandomLinear(int64_t rows, int64_t columns) {
    Linear out;
    out.matrix.weight = RandomTensor({rows, columns});
    return out;
  }

  // Rows [count, D] of attention of the tokens from position `begin` on, of one chunk, with the
  // layer's temperature (query_beta > 0) or without it.
  std::vector<float> Attention(double query_beta, double scale, int64_t begin, int64_t count) {
    mla_.rope.query_beta = query_beta;
    mla_.scale = static_cast<float>(scale);
    std::vector<int32_t> tokens(static_cast<size_t>(count)), positions(tokens.size());
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(begin));
    const std::vector<int64_t> slots(positions.begin(), positions.end());
    const auto chunk = SequenceChunk::Of(tokens, begin, GetParam(), pages_);
    Tensor lists(DType::kI32, {count, begin + count});
    for (int64_t t = 0; t < count; ++t)
      for (int64_t s = 0; s < begin + count; ++s)
        lists.view().Row<int32_t>(t)[s] = s <= begin + t ? static_cast<int32_t>(s) : -1;
    StepContext step;
    step.tokens = tokens;
    step.positions = positions;
    step.slots = slots;
    step.sequences = {&chunk, 1};
    if (GetParam() == MlaPath::kSparse) step.key_positions = lists;
    step.arithmetic = DType::kF32;
    step.cache = &cache_;
    step.workspace = &workspace_;
    step.exec = {&threads_, &machine_};

    random_.seed(static_cast<unsigned>(begin));
    const TensorView x = RandomTensor({count, kDims.d});
    const RopeAngles angles{RandomTensor({count, kDims.r / 2}), RandomTensor({count, kDims.r / 2})};
    std::vector<float> y(static_cast<size_t>(count * kDims.d));
    Forward(mla_, angles, x, TensorView(y.data(), DType::kF32, {count, kDims.d}), step);
    return y;
  }

  std::mt19937 random_{7};
  std::vector<Tensor> tensors_;
  LatentCache cache_;
  Machine machine_ = *Machine::Detect();
  ThreadPool threads_{2};
  Workspace workspace_;
  std::vector<int32_t> pages_ = std::vector<int32_t>(kPages);
  MlaLayer mla_;
};

// The factor is rounded in another place, so scores of at most 50 differ by 50·2^−22, probabilities
// by as much of themselves, and outputs below 40 by less than 1e-3. A wrong factor differs by more
// than 1 %.
TEST_P(QueryTemperature, IsAScaleOfThePosition) {
  const struct {
    int64_t begin;  // of a chunk whose second token starts a period
    double before, after;
  } kChunks[] = {{8191, 1.0, 1.0693147180559945}, {16383, 1.0693147180559945, 1.1098612288668109}};
  for (const auto& [begin, before, after] : kChunks) {
    const std::vector<float> y = Attention(kBeta, kScale, begin, 2);
    const std::vector<float> first = Attention(0, kScale * before, begin, 2);
    const std::vector<float> second = Attention(0, kScale * after, begin, 2);
    for (int64_t i = 0; i < 2 * kDims.d; ++i) {
      const auto j = static_cast<size_t>(i);
      EXPECT_NEAR(y[j], i < kDims.d ? first[j] : second[j], 1e-3) << begin << ", number " << i;
    }
  }
}

TEST_P(QueryTemperature, OfOneChangesNoByte) {
  EXPECT_EQ(Attention(kBeta, kScale, 8190, 2), Attention(0, kScale, 8190, 2));
  EXPECT_NE(Attention(kBeta, kScale, 8192, 1), Attention(0, kScale, 8192, 1));
}

INSTANTIATE_TEST_SUITE_P(Paths, QueryTemperature,
                         testing::Values(MlaPath::kAbsorbed, MlaPath::kLatent,
                                         MlaPath::kDecompressed, MlaPath::kSparse),
                         [](const auto& path) { return std::string(Name(path.param)); });

}  // namespace
}  // namespace latte::query_temperature_test
