// Models with quantised caches and with drafting layers on the emulated GPU: distance to the CPU with the same
// cache, and the golden logits of an independent implementation.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/engine/core/given_sequence.h"
#include "tests/cuda/support/device_engine.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/support/npy_reader.h"
#include "tests/support/step/single_steps.h"

namespace latte::cuda_cache_test {
namespace {

using testing_support::Cpu;
using testing_support::DeviceModel;
using testing_support::Gpu;
using testing_support::Matrix;
using testing_support::ReadNpy;

// The first tokens of a golden text: an emulated token takes a tenth of a second.
std::vector<int32_t> TokensOf(const std::string& model, size_t count) {
  const std::string path =
      std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + model + "/tokens.json";
  const Json ids = *Json::Parse(*ReadFile(path, 1 << 20), "tokens.json");
  std::vector<int32_t> out;
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(*ids.At(i).AsInt()));
  return out;
}

// The mean over rows of the KL divergence of softmax(b) from softmax(a).
double MeanKl(const std::vector<float>& a, const std::vector<float>& b, int64_t columns) {
  const auto log_sum = [&](const float* row) {
    double sum = 0;  // logits are small
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(row[i]));
    return std::log(sum);
  };
  EXPECT_EQ(a.size(), b.size());
  double total = 0;
  const int64_t rows = std::ssize(a) / columns;
  for (int64_t r = 0; r < rows; ++r) {
    const float *const x = a.data() + r * columns, *const y = b.data() + r * columns;
    const double shift = log_sum(y) - log_sum(x);
    for (int64_t i = 0; i < columns; ++i) {
      const double log_p = static_cast<double>(x[i]) - log_sum(x);
      total += std::exp(log_p) * (static_cast<double>(x[i]) - static_cast<double>(y[i]) + shift);
    }
  }
  return total / static_cast<double>(rows);
}

struct CacheCase {
  const char* model;
  AttentionMode mode;
};

class CachesOnGpu : public testing::TestWithParam<CacheCase> {
 protected:
  ~CachesOnGpu() override { testing_support::EmulatedCounts(); }

  // Of four tokens at once, then of two one by one.
  static std::vector<float> Logits(const DeviceModel& on, const std::string& cache) {
    EngineOptions options;
    options.attention = Name(GetParam().mode);
    options.dtype = "f32";
    options.cache_dtype = cache;
    options.page_tokens = 16;
    options.threads = 1;
    const Settings settings =
        ResolveOptionsForOne(options, on.model().config(), on.machine(), 6).value();
    const auto sequence = GivenSequence::Create(on.model(), on.machine(), settings).value();
    std::vector<float> out;
    const auto append = [&](int64_t, const TensorView& logits) -> Status {
      out.insert(out.end(), logits.Ptr<float>(), logits.Ptr<float>() + logits.elements());
      return {};
    };
    const std::vector<int32_t> tokens = TokensOf(GetParam().model, 6);
    EXPECT_TRUE(sequence->AppendPrompt(std::span(tokens).first(4), append));
    for (const int32_t token : std::span(tokens).subspan(4))
      EXPECT_TRUE(sequence->AppendGenerated(token, append));
    return out;
  }
};

TEST_P(CachesOnGpu, EveryFormatIsAsOnTheCpu) {
  const std::string path = std::string("tests/goldens/") + GetParam().model;
  const DeviceModel gpu(path, Gpu()), cpu(path, Cpu());
  const std::vector<float> plain = Logits(gpu, "f32");
  for (const std::string cache : {"fp8", "fp8-dense", "int8", "q6"}) {
    const std::vector<float> found = Logits(gpu, cache);
    EXPECT_LT(MeanKl(Logits(cpu, cache), found, cpu.model().config().vocab), 1e-4) << cache;
    EXPECT_NE(found, plain) << cache;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CachesOnGpu,
                         testing::Values(CacheCase{"v3_mtp2", AttentionMode::kAbsorbed},
                                         CacheCase{"v3_mtp2", AttentionMode::kLatent},
                                         CacheCase{"v32_sparse", AttentionMode::kSparse}),
                         [](const auto& c) {
                           return fmt::format("{}_{}", c.param.model, Name(c.param.mode));
                         });

class DraftLayersOnGpu : public testing::TestWithParam<const char*> {
 protected:
  ~DraftLayersOnGpu() override { testing_support::EmulatedCounts(); }
};

// The largest difference between `logits` and the first rows of a golden file.
double MaxError(const TensorView& logits, const Matrix& golden) {
  double worst = 0;
  for (int64_t i = 0; i < logits.elements(); ++i) {
    const double error = std::abs(static_cast<double>(logits.Ptr<float>()[i]) -
                                  static_cast<double>(golden.values[static_cast<size_t>(i)]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

TEST_P(DraftLayersOnGpu, F32GivesTheGoldenLogitsAndDrafts) {
  constexpr double kTolerance = 2e-4;  // as in tests/goldens
  const std::string path = std::string("tests/goldens/") + GetParam();
  const DeviceModel gpu(path, Gpu(), /*mtp=*/true);
  const ModelConfig& config = gpu.model().config();
  const AttentionMode mode =
      config.indexer.topk > 0 ? AttentionMode::kSparse : AttentionMode::kAbsorbed;
  CacheSpec spec = CacheSpecFor(config, mode, CacheDType::Plain(DType::kF32), 16);
  spec.layers += config.mtp_layers;
  LatentCache cache = *LatentCache::Create(spec, 2, gpu.model().device());
  Workspace workspace(gpu.model().device());
  ThreadPool threads(1);
  testing_support::SingleSteps steps({.model = &gpu.model(),
                                      .cache = &cache,
                                      .workspace = &workspace,
                                      .exec = {.threads = &threads, .machine = &gpu.machine()}},
                                     {DType::kF32, 4096, true, SparseFrom(config, mode)});
  const std::vector<int32_t> tokens = TokensOf(GetParam(), 8), pages = {1, 0};
  const auto text = SequenceChunk::Of(tokens, 0, DecodePath(mode), pages);
  steps.Forward({&text, 1});
  const std::string dir = std::string(LATTE_SOURCE_DIR) + "/" + path;
  EXPECT_LT(MaxError(steps.AllLogits(), ReadNpy(dir + "/logits.npy")), kTolerance);
  const auto shifted = SequenceChunk::Of(std::span(tokens).subspan(1), 0, DecodePath(mode), pages);
  steps.Draft({&shifted, 1});
  EXPECT_LT(MaxError(steps.AllDraftLogits(), ReadNpy(dir + "/draft_logits.npy")), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(All, DraftLayersOnGpu,
                         testing::Values("v3_noaux", "v3_mtp2", "v32_mtp", "glm52_mtp"),
                         [](const auto& c) { return std::string(c.param); });

}  // namespace
}  // namespace latte::cuda_cache_test
