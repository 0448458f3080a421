// Compares the model with logits of an independent fp64 implementation (tests/goldens/reference.py,
// which is itself compared with transformers): every fixture, attention mode, chunk size and
// workspace size, in f32 arithmetic.
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/checkpoint/model_path.h"
#include "src/engine/core/given_sequence.h"
#include "src/layers/mla/mla.h"
#include "src/models/registry.h"
#include "tests/support/npy_reader.h"
#include "tests/support/parameter_name.h"
#include "tests/support/step/single_steps.h"

namespace latte::goldens_test {
namespace {

using testing_support::Matrix;
using testing_support::ReadNpy;

// The project's tolerance for f32 logits of size 1 to 10.
constexpr double kTolerance = 2e-4;

constexpr const char* kFixtures[] = {
    "v2_lite",  "v2_group",      "v3_noaux", "nope",        "moonlight",     "half_split",
    "glm",      "v32",           "axk1",     "mistral4",    "mistral4_fp8",  "v3_mtp2",
    "fp8",      "int8",          "pack4",    "pack4_zeros", "pack8",         "awq",
    "gptq",     "gguf_v2",       "gguf_v3",  "gguf_k2",     "gguf_mistral4", "gguf_minicpm3",
    "minicpm3", "minicpm3_short"};
constexpr AttentionMode kModes[] = {AttentionMode::kDecompressed, AttentionMode::kLatent,
                                    AttentionMode::kAbsorbed};

// The settings of a computation.
struct Way {
  AttentionMode attention = AttentionMode::kAuto;
  DType dtype = DType::kBF16;
  bool int8_activations = true;
  int64_t chunk_tokens = 512;  // 0: all at once
  int64_t prefill_workspace_tokens = 4096;
  int64_t page_tokens = 64;
  int threads = 0;
  std::string cache_dtype;  // empty: dtype
};

class Goldens : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string dir = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + GetParam();
    auto loaded = LoadModel(*ResolveModelPath(dir));
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
    const Json ids = *Json::Parse(*ReadFile(dir + "/tokens.json", 1 << 20), "tokens.json");
    for (size_t i = 0; i < ids.size(); ++i)
      tokens_.push_back(static_cast<int32_t>(*ids.At(i).AsInt()));
    golden_ = ReadNpy(dir + "/logits.npy");
    ASSERT_EQ(golden_.rows, static_cast<int64_t>(tokens_.size()));
  }

  // The logits of the whole sequence. The first `prompt` tokens are given at once, the others one
  // by one.
  std::vector<float> Logits(const Way& way, size_t prompt) {
    const auto sequence = Make(way);
    std::vector<float> out;
    const auto append = [&](int64_t first, const TensorView& logits) -> Status {
      EXPECT_EQ(first * golden_.columns, static_cast<int64_t>(out.size()));
      out.insert(out.end(), logits.Ptr<float>(), logits.Ptr<float>() + logits.elements());
      return {};
    };
    EXPECT_TRUE(sequence->AppendPrompt(std::span(tokens_).subspan(0, prompt), append));
    for (size_t i = prompt; i < tokens_.size(); ++i)
      EXPECT_TRUE(sequence->AppendGenerated(tokens_[i], append));
    return out;
  }
  std::unique_ptr<GivenSequence> Make(const Way& way) const {
    const auto count = static_cast<int64_t>(tokens_.size());
    EngineOptions options;
    options.attention = Name(way.attention);
    options.dtype = Name(way.dtype);
    options.cache_dtype = way.cache_dtype;
    options.int8_activations = way.int8_activations;
    options.prefill_workspace_tokens = way.prefill_workspace_tokens;
    options.page_tokens = way.page_tokens;
    options.threads = way.threads;
    auto settings = ResolveOptionsForOne(options, model_->config(), machine_, count);
    EXPECT_TRUE(settings) << ToString(settings.error());
    settings->options.max_batch_tokens = way.chunk_tokens == 0 ? count : way.chunk_tokens;
    return GivenSequence::Create(*model_, machine_, *settings).value();
  }

  double MaxError(const std::vector<float>& logits) const {
    EXPECT_EQ(logits.size(), golden_.values.size());
    double worst = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double error =
          std::abs(static_cast<double>(logits[i]) - static_cast<double>(golden_.values[i]));
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    return worst;
  }

  double Cosine(const std::vector<float>& logits) const {
    double dot = 0, a = 0, b = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double x = logits[i];
      const double y = golden_.values[i];
      dot += x * y;
      a += x * x;
      b += y * y;
    }
    return dot / std::sqrt(a * b);
  }

  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Model> model_;
  std::vector<int32_t> tokens_;
  Matrix golden_;
};

TEST_P(Goldens, EveryModeAndChunkSizeGivesTheGoldenLogits) {
  for (const AttentionMode mode : kModes)
    for (const int64_t chunk : {1, 7, 64, 0})
      for (const int64_t expand : {50, 4096}) {
        const Way way{.attention = mode,
                      .dtype = DType::kF32,
                      .chunk_tokens = chunk,
                      .prefill_workspace_tokens = expand,
                      .threads = 2};
        EXPECT_LT(MaxError(Logits(way, tokens_.size())), kTolerance)
            << Name(mode) << ", chunk " << chunk << ", expand " << expand;
      }
}

TEST_P(Goldens, ReferenceKernelsGiveTheGoldenLogits) {
  machine_.isa = Isa::kRef;
  for (const AttentionMode mode : kModes)
    EXPECT_LT(MaxError(Logits({.attention = mode, .dtype = DType::kF32}, tokens_.size())),
              kTolerance)
        << Name(mode);
}

TEST_P(Goldens, PromptThenGeneratedTokensGiveTheGoldenLogits) {
  const Way way{.dtype = DType::kF32};
  EXPECT_LT(MaxError(Logits(way, tokens_.size() / 2)), kTolerance);
}

// In each mode, the bytes are the same for every chunk size, page size and thread count.
TEST_P(Goldens, BytesDoNotDependOnChunksPagesOrThreads) {
  for (const AttentionMode mode : kModes)
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      const Way whole{.attention = mode,
                      .dtype = dtype,
                      .chunk_tokens = 0,
                      .prefill_workspace_tokens = 64,
                      .threads = 1};
      const std::vector<float> expected = Logits(whole, tokens_.size());
      struct Variation {
        int64_t chunk, page_tokens;
        int threads;
      };
      for (const auto& [chunk, page_tokens, threads] :
           {Variation{1, 16, 3}, Variation{7, 64, 1}, Variation{64, 16, 2}, Variation{7, 128, 3}}) {
        Way way = whole;
        way.chunk_tokens = chunk;
        way.page_tokens = page_tokens;
        way.threads = threads;
        const std::vector<float> found = Logits(way, tokens_.size());
        EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)), 0)
            << Name(mode) << " " << Name(dtype) << ", chunk " << chunk << ", page " << page_tokens
            << ", threads " << threads;
      }
    }
}

// f16 has three more bits than bf16, so it is closer, with the same caveat about routers. Rounding
// activations to 8 bits for integer weights would hide the difference.
TEST_P(Goldens, F16ArithmeticStaysCloser) {
  for (const AttentionMode mode : kModes) {
    const std::vector<float> logits = Logits(
        {.attention = mode, .dtype = DType::kF16, .int8_activations = false}, tokens_.size());
    EXPECT_GT(Cosine(logits), 0.999) << Name(mode);
    EXPECT_GT(MaxError(logits), kTolerance / 10) << "f16 arithmetic was not used";
  }
}

// bf16 rounds activations and cache rows to 8 bits: logits change slightly. If a router's choice is
// nearly even, rounding may select another expert, which is the largest effect with random weights,
// hence a cosine instead of a bound.
TEST_P(Goldens, BF16ArithmeticStaysClose) {
  for (const AttentionMode mode : kModes) {
    const std::vector<float> logits = Logits({.attention = mode}, tokens_.size());
    EXPECT_GT(Cosine(logits), 0.99) << Name(mode);
    EXPECT_GT(MaxError(logits), kTolerance) << "bf16 arithmetic was not used";
  }
}

// Models whose tokens attend to 4 keys. tests/goldens/README.md says how far mistakes move the
// logits.
class SparseGoldens : public Goldens {
 protected:
  static constexpr AttentionMode kSparseModes[] = {AttentionMode::kAuto, AttentionMode::kSparse};
};

TEST_P(SparseGoldens, EveryChunkSizeGivesTheGoldenLogits) {
  for (const AttentionMode mode : kSparseModes)
    for (const int64_t chunk : {1, 3, 7, 64, 0}) {
      const Way way{.attention = mode, .dtype = DType::kF32, .chunk_tokens = chunk, .threads = 2};
      EXPECT_LT(MaxError(Logits(way, tokens_.size())), kTolerance)
          << Name(mode) << ", chunk " << chunk;
    }
}

TEST_P(SparseGoldens, ReferenceKernelsGiveTheGoldenLogits) {
  machine_.isa = Isa::kRef;
  EXPECT_LT(MaxError(Logits({.dtype = DType::kF32}, tokens_.size())), kTolerance);
}

TEST_P(SparseGoldens, PromptThenGeneratedTokensGiveTheGoldenLogits) {
  for (const size_t prompt : {size_t{1}, size_t{5}, tokens_.size() / 2})
    EXPECT_LT(MaxError(Logits({.dtype = DType::kF32}, prompt)), kTolerance) << prompt;
}

TEST_P(SparseGoldens, AttentionToAllKeysIsFarOff) {
  for (const AttentionMode mode : kModes)
    EXPECT_GT(MaxError(Logits({.attention = mode, .dtype = DType::kF32}, tokens_.size())), 1)
        << Name(mode);
}

TEST_P(SparseGoldens, BytesDoNotDependOnChunksPagesOrThreads) {
  for (const AttentionMode mode : kSparseModes)
    for (const std::string cache : {"f32", "bf16", "fp8", "int8"}) {
      const Way whole{.attention = mode, .chunk_tokens = 0, .threads = 1, .cache_dtype = cache};
      const std::vector<float> expected = Logits(whole, tokens_.size());
      for (const int64_t chunk : {1, 7, 64}) {
        Way way = whole;
        way.chunk_tokens = chunk;
        way.page_tokens = chunk == 7 ? 64 : 16;
        way.threads = chunk == 64 ? 2 : 3;
        const std::vector<float> found = Logits(way, tokens_.size());
        EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)), 0)
            << Name(mode) << ", cache " << cache << ", chunk " << chunk;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, SparseGoldens,
                         testing::Values("v32_sparse", "v32_mtp", "glm5", "glm52", "glm52_mtp",
                                         "gguf_v32", "gguf_glm52"),
                         testing_support::ParameterName());

// The largest difference between the draft logits of a fixture and the golden ones, with the whole
// text in one step.
double DraftError(const std::string& name, AttentionMode mode) {
  const std::string dir = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + name;
  const auto model = *LoadModel(*ResolveModelPath(dir), {.mtp = true});
  const Json ids = *Json::Parse(*ReadFile(dir + "/tokens.json", 1 << 20), "tokens.json");
  const Matrix golden = ReadNpy(dir + "/draft_logits.npy");
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i <= golden.rows; ++i)
    tokens.push_back(static_cast<int32_t>(*ids.At(static_cast<size_t>(i)).AsInt()));
  const Machine machine = *Machine::Detect();
  ThreadPool threads(2);
  const ModelConfig& config = model->config();
  const std::vector<int32_t> pages = {1, 0};
  CacheSpec spec = CacheSpecFor(config, mode, CacheDType::Plain(DType::kF32), 64);
  spec.layers += config.mtp_layers;
  LatentCache cache = *LatentCache::Create(spec, std::ssize(pages));
  Workspace workspace;
  testing_support::SingleSteps steps({.model = model.get(),
                                      .cache = &cache,
                                      .workspace = &workspace,
                                      .exec = {.threads = &threads, .machine = &machine}},
                                     {DType::kF32, 4096, true, SparseFrom(config, mode)});
  const MlaPath path = DecodePath(mode);
  const auto main = SequenceChunk::Of(tokens, 0, path, pages);
  steps.Forward({&main, 1});
  const auto shifted = SequenceChunk::Of(std::span(tokens).subspan(1), 0, path, pages);
  steps.Draft({&shifted, 1});
  const TensorView logits = steps.AllDraftLogits();
  double worst = 0;
  for (int64_t i = 0; i < logits.elements(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(logits.Ptr<float>()[i]) -
                                     static_cast<double>(golden.values[static_cast<size_t>(i)])));
  return worst;
}

TEST(GoldenDrafts, EveryPathGivesTheGoldenDraftLogits) {
  for (const AttentionMode mode : kModes)
    for (const char* name : {"v3_noaux", "v3_mtp2"})
      EXPECT_LT(DraftError(name, mode), kTolerance) << name << ", " << Name(mode);
}

TEST(GoldenDrafts, TheLayerChoosesKeysOfItsOwn) {
  EXPECT_LT(DraftError("v32_mtp", AttentionMode::kSparse), kTolerance);
  EXPECT_LT(DraftError("glm52_mtp", AttentionMode::kSparse), kTolerance);
  EXPECT_LT(DraftError("gguf_v32", AttentionMode::kSparse), kTolerance);
  EXPECT_LT(DraftError("gguf_glm52", AttentionMode::kSparse), kTolerance);
  EXPECT_GT(DraftError("v32_mtp", AttentionMode::kAbsorbed), 1);
}

// A further draft goes on from RMSNorm_s(z) where the first has RMSNorm_f(h), both followed by the
// norm of the layer's input, which takes a factor out. So it is a first draft from any h with
// RMSNorm_f(h) ∝ RMSNorm_s(z): such as z ⊙ w_s ⊘ w_f.
TEST(GoldenDrafts, FurtherDraftsGoOnFromTheStateAfterTheHeadsNorm) {
  const std::string dir = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v3_noaux";
  auto model = LoadModel(dir, {.mtp = true});
  ASSERT_TRUE(model) << ToString(model.error());
  const Machine machine = *Machine::Detect();
  ThreadPool threads(2);
  const ModelConfig& config = (*model)->config();
  const Checkpoint checkpoint = *Checkpoint::Open(dir);
  const auto norm = [&](const std::string& name) {
    return checkpoint.View(*checkpoint.Find(name)).Ptr<float>();
  };
  const float* const w_f = norm("model.norm.weight");
  const float* const w_s =
      norm(fmt::format("model.layers.{}.shared_head.norm.weight", config.layers));

  LatentCache cache = *LatentCache::Create(
      {MlaCacheStreams(config.mla, MlaPath::kAbsorbed, CacheDType::Plain(DType::kF32)),
       config.layers + 1, 64},
      1);
  Workspace workspace;
  testing_support::SingleSteps steps({.model = model->get(),
                                      .cache = &cache,
                                      .workspace = &workspace,
                                      .exec = {.threads = &threads, .machine = &machine}},
                                     {DType::kF32, 4096});
  const std::vector<int32_t> tokens = {5, 17, 3, 29, 8, 11}, pages = {0};
  const auto main = SequenceChunk::Of(std::span(tokens).first(4), 0, MlaPath::kAbsorbed, pages);
  steps.Forward({&main, 1});
  const auto first =
      SequenceChunk::Of(std::span(tokens).subspan(1, 4), 0, MlaPath::kAbsorbed, pages);
  const TensorView z = steps.Draft({&first, 1}).Slice(0, 3, 4);
  std::vector<float> same(static_cast<size_t>(config.mla.d));
  for (size_t i = 0; i < same.size(); ++i) same[i] = z.Ptr<float>()[i] * w_s[i] / w_f[i];

  const auto next = SequenceChunk::Of(std::span(tokens).last(1), 4, MlaPath::kAbsorbed, pages);
  const auto logits_of = [&](DraftRun run, int32_t source) {
    steps.Draft({&next, 1}, run, {source});
    const TensorView logits = steps.AllDraftLogits();
    return std::vector<float>(logits.Ptr<float>(), logits.Ptr<float>() + logits.elements());
  };
  const std::vector<float> found = logits_of({.input = DraftInput::kDraft}, 3);
  std::ranges::copy(same, steps.runner().kept().Row<float>(0));
  const std::vector<float> expected = logits_of({}, 0);
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(found[i]) - expected[i]));
  EXPECT_LT(worst, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(All, Goldens, testing::ValuesIn(kFixtures),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::goldens_test
