// Whole models on the emulated GPU, by the code that a GPU would run: the logits of an independent
// fp64 implementation (tests/goldens), distance to the reference kernels in bf16, and what passes
// between host and device.
#include <gtest/gtest.h>

#include "src/checkpoint/config/model_config.h"
#include "src/engine/core/given_sequence.h"
#include "tests/cuda/support/device_engine.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/cuda/support/golden_logits.h"
#include "tests/support/parameter_name.h"

namespace latte::cuda_model_test {
namespace {

using testing_support::Cpu;
using testing_support::EmulatedCounts;
using testing_support::EngineRun;
using testing_support::Gpu;
using testing_support::kGoldenTolerance;
using testing_support::Matrix;
using testing_support::MaxError;
using testing_support::MeanKl;
using testing_support::ReadNpy;

// A golden text of few tokens: an emulated one takes a tenth of a second.
struct Golden {
  static constexpr size_t kTokens = 10, kPrompt = 7;

  explicit Golden(const std::string& name, size_t count = kTokens)
      : dir(testing_support::GoldenDir(name)),
        logits(ReadNpy(dir + "/logits.npy")),
        tokens(testing_support::GoldenTokens(name, count)) {}

  std::string dir;
  Matrix logits;
  std::vector<int32_t> tokens;
};

// A model with its sequence, on a device.
struct Loaded {
  Loaded(const Golden& golden, const ComputeDevice& device, AttentionMode mode, DType dtype)
      : Loaded(golden, device, device.machine(), mode, dtype) {}
  // machine: of the device; must outlive this.
  Loaded(const Golden& golden, const ComputeDevice& device, const Machine& machine,
         AttentionMode mode, DType dtype) {
    ModelOptions wanted;
    wanted.device = &device.device();
    model = LoadModel(*ResolveModelPath(golden.dir), wanted).value();
    EngineOptions options;
    options.attention = Name(mode);
    options.dtype = Name(dtype);
    options.page_tokens = 16;
    options.threads = 1;
    const Settings settings = ResolveOptionsForOne(options, model->config(), machine,
                                                   static_cast<int64_t>(golden.tokens.size()))
                                  .value();
    sequence = GivenSequence::Create(*model, machine, settings).value();
  }

  // The first `prompt` tokens at once, the others one by one.
  std::vector<float> Logits(const Golden& golden, size_t prompt) {
    std::vector<float> out;
    const auto append = [&](int64_t, const TensorView& logits) -> Status {
      out.insert(out.end(), logits.Ptr<float>(), logits.Ptr<float>() + logits.elements());
      return {};
    };
    const std::span<const int32_t> tokens = golden.tokens;
    EXPECT_TRUE(sequence->AppendPrompt(tokens.first(prompt), append));
    for (const int32_t token : tokens.subspan(prompt))
      EXPECT_TRUE(sequence->AppendGenerated(token, append));
    EXPECT_EQ(std::ssize(out), std::ssize(tokens) * golden.logits.columns);
    return out;
  }

  std::unique_ptr<Model> model;
  std::unique_ptr<GivenSequence> sequence;
};

class OnGpu : public testing::TestWithParam<const char*> {
 protected:
  Golden golden_{GetParam()};
};

TEST_P(OnGpu, F32GivesTheGoldenLogitsOnEveryPath) {
  using Modes = std::vector<AttentionMode>;
  const bool sparse = LoadModelConfig(golden_.dir)->indexer.topk > 0;
  for (const AttentionMode mode : sparse ? Modes{AttentionMode::kAuto}
                                         : Modes{AttentionMode::kAbsorbed, AttentionMode::kLatent,
                                                 AttentionMode::kDecompressed}) {
    Loaded loaded(golden_, Gpu(), mode, DType::kF32);
    EXPECT_LT(MaxError(loaded.Logits(golden_, Golden::kPrompt), golden_.logits), kGoldenTolerance)
        << Name(mode);
  }
}

TEST_P(OnGpu, ChunksChangeNoByte) {
  const auto logits = [&](size_t prompt) {
    return Loaded(golden_, Gpu(), AttentionMode::kAbsorbed, DType::kBF16).Logits(golden_, prompt);
  };
  EXPECT_EQ(logits(golden_.tokens.size()), logits(3));
}

// A step copies its description to the device once, and its logits and flags back. Nothing else
// passes, and the host waits for nothing else: so there is no copy and no wait between embedding
// and logits.
TEST_P(OnGpu, OnlyStepAndLogitsPassBetweenHostAndDevice) {
  Loaded loaded(golden_, Gpu(), AttentionMode::kAuto, DType::kBF16);
  const auto ignore = [](int64_t, const TensorView&) -> Status { return {}; };
  const std::span<const int32_t> tokens = golden_.tokens;
  ASSERT_TRUE(loaded.sequence->AppendPrompt(tokens.first(4), ignore));
  ASSERT_TRUE(loaded.sequence->AppendGenerated(tokens[4], ignore));
  const emulator::Counts before = EmulatedCounts();
  ASSERT_TRUE(loaded.sequence->AppendGenerated(tokens[5], ignore));
  const emulator::Counts after = EmulatedCounts();
  EXPECT_EQ(after.copies - before.copies, 3);
  EXPECT_EQ(after.waits - before.waits, 2);
  EXPECT_EQ(after.allocations - before.allocations, 0);
  EXPECT_GT(after.launches - before.launches, 10);
}

INSTANTIATE_TEST_SUITE_P(All, OnGpu,
                         testing::Values("v2_lite", "v2_group", "v3_noaux", "moonlight",
                                         "v32_sparse", "glm52"),
                         testing_support::ParameterName());

// Every golden model on the path that a user gets, in few tokens.
class KindsOnGpu : public testing::TestWithParam<const char*> {
 protected:
  std::vector<float> Logits(const ComputeDevice& device, const Machine& machine,
                            DType dtype) const {
    return Loaded(golden_, device, machine, AttentionMode::kAuto, dtype)
        .Logits(golden_, golden_.tokens.size() - 1);
  }
  std::vector<float> GpuLogits(DType dtype) const { return Logits(Gpu(), Gpu().machine(), dtype); }
  // The queries of mistral4 have a temperature from its token 40 on.
  size_t CountOf(std::string_view name) const { return name == "mistral4" ? 42 : 6; }

  Golden golden_{GetParam(), CountOf(GetParam())};
};

TEST_P(KindsOnGpu, F32GivesTheGoldenLogits) {
  EXPECT_LT(MaxError(GpuLogits(DType::kF32), golden_.logits), kGoldenTolerance);
}

// In bf16, weights of 4 and 8 bits are multiplied by activations of 8 bits. The kernels of an
// instruction set are no measure: where an activation is between two integers, or two experts are
// equally good, AVX2 is as far from the reference as 2e-3.
TEST_P(KindsOnGpu, Bf16IsAsByTheReferenceKernels) {
  const Machine reference{.isa = Isa::kRef};
  const std::vector<float> gpu = GpuLogits(DType::kBF16);
  const std::vector<float> cpu = Logits(Cpu(), reference, DType::kBF16);
  EXPECT_LT(MeanKl(cpu, gpu, golden_.logits.columns), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, KindsOnGpu,
                         testing::Values("v2_lite", "v2_group", "v3_noaux", "v3_mtp2", "moonlight",
                                         "v32", "v32_mtp", "v32_sparse", "glm", "glm5", "glm52",
                                         "glm52_mtp", "mistral4", "mistral4_fp8", "axk1",
                                         "half_split", "minicpm3", "minicpm3_short", "nope", "fp8",
                                         "int8", "awq", "gptq", "pack4", "pack4_zeros", "pack8",
                                         "gguf_k2", "gguf_minicpm3", "gguf_mistral4", "gguf_v2",
                                         "gguf_v3", "gguf_v32", "gguf_glm52"),
                         testing_support::ParameterName());

// Answers of one prompt share its pages; each copies the last one before it writes there.
TEST(ForksOnGpu, AnswersAreThoseOfTheCpu) {
  const Golden golden("v2_lite");
  const auto answers = [&](const ComputeDevice& device) {
    ModelOptions wanted;
    wanted.device = &device.device();
    const auto model = LoadModel(*ResolveModelPath(golden.dir), wanted).value();
    EngineOptions options;
    options.dtype = "f32";
    options.page_tokens = 16;
    options.threads = 1;
    options.cache_bytes = 1 << 20;
    options.max_sequences = 3;
    const Settings settings =
        ResolveOptions(options, model->config(), device.machine(), {int64_t{1} << 30}).value();
    const EngineParts parts = {
        .model = model.get(), .machine = &device.machine(), .host = &device.host()};
    const auto run = EngineRun::Over(parts, settings).value();
    Request request;
    request.tokens = golden.tokens;
    request.n = 3;
    request.sampling.seed = 1;
    request.stop.max_tokens = 3;
    const RequestId id = run->core().Submit(request).value();
    EXPECT_EQ(run->Finish(), "");
    std::vector<std::vector<int32_t>> out;
    for (int choice = 0; choice < 3; ++choice) out.push_back(run->Of(id, choice).tokens);
    return out;
  };
  EXPECT_EQ(answers(Gpu()), answers(Cpu()));
}

}  // namespace
}  // namespace latte::cuda_model_test
