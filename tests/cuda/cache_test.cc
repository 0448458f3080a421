// Models with quantised caches and with drafting layers on the emulated GPU: distance to the CPU
// with the same cache, and the golden logits of an independent implementation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/engine/core/given_sequence.h"
#include "tests/cuda/support/device_engine.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/cuda/support/golden_logits.h"
#include "tests/support/step/single_steps.h"

namespace latte::cuda_cache_test {
namespace {

using testing_support::DeviceModel;
using testing_support::GoldenDir;
using testing_support::GoldenTokens;
using testing_support::Gpu;
using testing_support::kGoldenTolerance;
using testing_support::MaxError;
using testing_support::MeanKl;
using testing_support::ReadNpy;

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
    const std::vector<int32_t> tokens = GoldenTokens(GetParam().model, 6);
    EXPECT_TRUE(sequence->AppendPrompt(std::span(tokens).first(4), append));
    for (const int32_t token : std::span(tokens).subspan(4))
      EXPECT_TRUE(sequence->AppendGenerated(token, append));
    return out;
  }
};

TEST_P(CachesOnGpu, EveryFormatIsAsOnTheCpu) {
  const std::string path = std::string("tests/goldens/") + GetParam().model;
  const DeviceModel gpu(path, Gpu());
  const DeviceModel cpu = DeviceModel::ByReference(path);
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

std::span<const float> Numbers(const TensorView& logits) {
  return {logits.Ptr<float>(), static_cast<size_t>(logits.elements())};
}

TEST_P(DraftLayersOnGpu, F32GivesTheGoldenLogitsAndDrafts) {
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
  const std::vector<int32_t> tokens = GoldenTokens(GetParam(), 8), pages = {1, 0};
  const auto text = SequenceChunk::Of(tokens, 0, DecodePath(mode), pages);
  steps.Forward({&text, 1});
  const std::string dir = GoldenDir(GetParam());
  EXPECT_LT(MaxError(Numbers(steps.AllLogits()), ReadNpy(dir + "/logits.npy")), kGoldenTolerance);
  const auto shifted = SequenceChunk::Of(std::span(tokens).subspan(1), 0, DecodePath(mode), pages);
  steps.Draft({&shifted, 1});
  EXPECT_LT(MaxError(Numbers(steps.AllDraftLogits()), ReadNpy(dir + "/draft_logits.npy")),
            kGoldenTolerance);
}

INSTANTIATE_TEST_SUITE_P(All, DraftLayersOnGpu,
                         testing::Values("v3_noaux", "v3_mtp2", "v32_mtp", "glm52_mtp", "gguf_v32",
                                         "gguf_glm52"),
                         [](const auto& c) { return std::string(c.param); });

}  // namespace
}  // namespace latte::cuda_cache_test
