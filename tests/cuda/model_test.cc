// Whole models on the emulated GPU, by the code that a GPU would run: the logits of an independent fp64
// implementation (tests/goldens), distance to the CPU in bf16, and what passes between host and device.
#include <cmath>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/model_path.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/core/given_sequence.h"
#include "src/models/registry.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/support/engine_run.h"
#include "tests/support/npy_reader.h"
#include "tests/support/parameter_name.h"

namespace latte::cuda_model_test {
namespace {

using testing_support::EmulatedCounts;
using testing_support::EngineRun;
using testing_support::Matrix;
using testing_support::ReadNpy;

// As in tests/goldens.
constexpr double kTolerance = 2e-4;

const ComputeDevice& Gpu() {
  static const ComputeDevice gpu = ComputeDevice::Open("cuda").value();
  return gpu;
}
const ComputeDevice& Cpu() {
  static const ComputeDevice cpu = ComputeDevice::Open("cpu").value();
  return cpu;
}

// The first tokens of a golden text: an emulated token takes a tenth of a second. Later tokens change no
// logits of earlier ones.
struct Golden {
  static constexpr size_t kTokens = 10, kPrompt = 7;

  explicit Golden(const std::string& name, size_t count = kTokens)
      : dir(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + name),
        logits(ReadNpy(dir + "/logits.npy")) {
    const Json ids = *Json::Parse(*ReadFile(dir + "/tokens.json", 1 << 20), "tokens.json");
    for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(*ids.At(i).AsInt()));
    logits.rows = static_cast<int64_t>(count);
    logits.values.resize(count * static_cast<size_t>(logits.columns));
  }

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
    return out;
  }

  std::unique_ptr<Model> model;
  std::unique_ptr<GivenSequence> sequence;
};

double MaxError(const std::vector<float>& logits, const Matrix& golden) {
  EXPECT_EQ(logits.size(), golden.values.size());
  double worst = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double error =
        std::abs(static_cast<double>(logits[i]) - static_cast<double>(golden.values[i]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

// The mean over rows of the KL divergence of softmax(b) from softmax(a).
double MeanKl(const std::vector<float>& a, const std::vector<float>& b, int64_t columns) {
  const auto log_sum = [&](const float* row) {
    double max = row[0], sum = 0;
    for (int64_t i = 0; i < columns; ++i) max = std::max(max, static_cast<double>(row[i]));
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(row[i]) - max);
    return max + std::log(sum);
  };
  double total = 0;
  const auto rows = std::ssize(a) / columns;
  for (int64_t r = 0; r < rows; ++r) {
    const float *const x = a.data() + r * columns, *const y = b.data() + r * columns;
    const double of_x = log_sum(x), of_y = log_sum(y);
    for (int64_t i = 0; i < columns; ++i) {
      const double log_p = static_cast<double>(x[i]) - of_x;
      total += std::exp(log_p) * (log_p - (static_cast<double>(y[i]) - of_y));
    }
  }
  return total / static_cast<double>(rows);
}

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
    EXPECT_LT(MaxError(loaded.Logits(golden_, Golden::kPrompt), golden_.logits), kTolerance)
        << Name(mode);
  }
}

TEST_P(OnGpu, Bf16IsAsOnTheCpu) {
  constexpr size_t prompt = Golden::kPrompt;
  const std::vector<float> gpu =
      Loaded(golden_, Gpu(), AttentionMode::kAuto, DType::kBF16).Logits(golden_, prompt);
  const std::vector<float> cpu =
      Loaded(golden_, Cpu(), AttentionMode::kAuto, DType::kBF16).Logits(golden_, prompt);
  EXPECT_LT(MeanKl(cpu, gpu, golden_.logits.columns), 1e-4);
}

TEST_P(OnGpu, ChunksChangeNoByte) {
  const auto logits = [&](size_t prompt) {
    return Loaded(golden_, Gpu(), AttentionMode::kAbsorbed, DType::kBF16).Logits(golden_, prompt);
  };
  EXPECT_EQ(logits(golden_.tokens.size()), logits(3));
}

// A step copies its description to the device once, and its logits and flags back. Nothing else passes, and the
// host waits for nothing else: so there is no copy and no wait between embedding and logits.
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

// Every other kind of model and format of weights, in fewer tokens and on the path that a user gets. In bf16,
// weights of 4 and 8 bits are multiplied by activations of 8 bits.
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
  EXPECT_LT(MaxError(GpuLogits(DType::kF32), golden_.logits), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(All, KindsOnGpu,
                         testing::Values("fp8", "int8", "awq", "gptq", "pack4", "pack4_zeros",
                                         "pack8", "mistral4", "mistral4_fp8", "axk1", "glm", "glm5",
                                         "half_split", "minicpm3", "minicpm3_short", "nope", "v32",
                                         "gguf_k2", "gguf_minicpm3", "gguf_mistral4", "gguf_v2",
                                         "gguf_v3", "gguf_v32", "gguf_glm52"),
                         testing_support::ParameterName());

class FormatsOnGpu : public KindsOnGpu {};

// The kernels of AVX2 are no measure: where an activation is between two integers of 8 bits, or two experts are
// equally good, they are as far from the reference as 2e-3.
TEST_P(FormatsOnGpu, Bf16IsAsByTheReferenceKernels) {
  const Machine reference{.isa = Isa::kRef};
  const std::vector<float> gpu = GpuLogits(DType::kBF16);
  const std::vector<float> cpu = Logits(Cpu(), reference, DType::kBF16);
  EXPECT_LT(MeanKl(cpu, gpu, golden_.logits.columns), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, FormatsOnGpu,
                         testing::Values("fp8", "int8", "pack4_zeros", "mistral4_fp8", "gguf_v2",
                                         "gguf_v3"),
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
