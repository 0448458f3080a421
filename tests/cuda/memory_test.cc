// The memory of a GPU, over the emulated driver: what steps take, and the errors of a GPU that has
// too little.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "src/base/limits/device_error.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/model_files.h"
#include "src/checkpoint/model_path.h"
#include "src/engine/core/complete.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/core/create_engine.h"
#include "src/engine/core/given_sequence.h"
#include "src/engine/step/step_settings.h"
#include "src/models/registry.h"
#include "src/tensor/cuda/cuda_device.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/cuda/support/golden_logits.h"

namespace latte::cuda_memory_test {
namespace {

using testing_support::Counted;
using testing_support::EmulatedCounts;
using testing_support::SetEmulatedMemory;

std::string GoldenPath(const std::string& name) {
  return *ResolveModelPath(testing_support::GoldenDir(name));
}

using CudaMemoryTest = testing_support::OnEmulatedGpu;

EngineOptions SmallEngine() {
  EngineOptions options;
  options.model = "tiny";
  options.device = "cuda";
  options.threads = 1;
  options.dtype = "f32";
  options.page_tokens = 16;
  options.max_sequences = 4;
  options.max_batch_tokens = 32;
  return options;
}

Result<CreatedEngine> Create(const EngineOptions& options) {
  LATTE_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::Load(options.model));
  return CreateEngine(options, std::move(files));
}

// An engine over a golden model, which has no tokenizer.
struct GoldenEngine {
  GoldenEngine(const std::string& name, EngineOptions options)
      : device(ComputeDevice::Open("cuda").value()) {
    ModelOptions wanted;
    wanted.device = &device.device();
    wanted.mtp = NeedsMtp(options, *LoadModelConfig(GoldenPath(name)));
    model = LoadModel(GoldenPath(name), wanted).value();
    weight_bytes = EmulatedCounts().bytes_in_use;
    settings = ResolveOptions(options, model->config(), device.machine(), {}).value();
    core =
        EngineCore::Create(
            {.model = model.get(), .machine = &device.machine(), .host = &device.host()}, settings)
            .value();
  }

  ComputeDevice device;
  std::unique_ptr<Model> model;
  int64_t weight_bytes = 0;
  Settings settings;
  std::unique_ptr<EngineCore> core;
};

// An engine chooses its cache by what the GPU has free, and all that it takes fits.
TEST_F(CudaMemoryTest, TheCacheTakesWhatTheGpuHasFree) {
  int64_t cache_before = 0;
  for (const int64_t megabytes : {48, 52, 64}) {
    SetEmulatedMemory(megabytes << 20);
    const CreatedEngine created = Create(SmallEngine()).value();
    const int64_t cache = created.engine->options().cache_bytes;
    EXPECT_GT(cache, cache_before);
    EXPECT_LT(cache, megabytes << 20);
    cache_before = cache;
  }
}

// Steps of a prompt and of an answer take no memory that the engine has not had from the start.
TEST_F(CudaMemoryTest, StepsTakeNoMemory) {
  for (const auto& [golden, attention] :
       {std::pair("v2_lite", "latent"), std::pair("v2_lite", "decompressed"),
        std::pair("v32_sparse", "auto"), std::pair("v3_mtp2", "auto")}) {
    EngineOptions options = SmallEngine();
    options.cache_bytes = 1 << 20;
    options.max_batch_tokens = 8;
    options.max_tokens = 16;
    options.attention = attention;
    options.draft_tokens = "auto";
    const GoldenEngine engine(golden, options);
    const emulator::Counts before = EmulatedCounts();
    Request request;
    for (int32_t i = 0; i < 12; ++i) request.tokens.push_back(i);
    request.stop.max_tokens = 3;
    const Completion answer = Complete(*engine.core, request, {}).value();
    EXPECT_EQ(answer.tokens.size(), 3u);
    const Counted counted(before);
    EXPECT_EQ(counted.Of(&emulator::Counts::allocations), 0) << golden;
    EXPECT_EQ(counted.Of(&emulator::Counts::bytes_in_use), 0) << golden;
    EXPECT_EQ(counted.Of(&emulator::Counts::pinned_bytes), 0) << golden;
    EXPECT_GT(counted.Of(&emulator::Counts::launches), 0) << golden;
  }
}

// Which path a prompt takes is known when it comes.
TEST_F(CudaMemoryTest, AnEngineHasTheMemoryOfEveryPath) {
  const auto step_bytes = [](const std::string& attention) {
    EngineOptions options = SmallEngine();
    options.cache_bytes = 8 << 20;
    options.max_tokens = 2048;
    options.attention = attention;
    const GoldenEngine engine("v3_mtp2", options);
    return EmulatedCounts().bytes_in_use - engine.weight_bytes;
  };
  const int64_t absorbed = step_bytes("absorbed"), latent = step_bytes("latent");
  EXPECT_GT(latent, absorbed);
  EXPECT_EQ(step_bytes("auto"), latent);
}

// The place of an error of memory: what it names.
enum class Lack { kNone, kWeights, kCache, kSteps };

Lack LackOf(const Result<CreatedEngine>& created) {
  if (created) return Lack::kNone;
  const std::string& text = created.error().message;
  EXPECT_EQ(created.error().code, Code::kExhausted) << text;
  EXPECT_NE(text.find("GPU memory: expected "), std::string::npos) << text;
  EXPECT_NE(text.find(" on cuda:0 'emulated GPU'; use "), std::string::npos) << text;
  if (text.find("weights") != std::string::npos) return Lack::kWeights;
  if (text.find("pages of the cache") != std::string::npos) return Lack::kCache;
  return Lack::kSteps;
}

// Whatever the GPU lacks memory for, loading ends with its name and gives all memory back.
TEST_F(CudaMemoryTest, EveryLackIsAnErrorByName) {
  EngineOptions options = SmallEngine();
  options.cache_bytes = 4 << 20;
  std::set<Lack> seen;
  for (int64_t megabytes = 1; megabytes <= 48; megabytes += 2) {
    SetEmulatedMemory(megabytes << 20);
    seen.insert(LackOf(Create(options)));
    EXPECT_EQ(EmulatedCounts().bytes_in_use, 0) << megabytes << " MiB";
  }
  EXPECT_EQ(seen, (std::set<Lack>{Lack::kNone, Lack::kWeights, Lack::kCache, Lack::kSteps}));
}

// Another program takes memory after the engine has asked how much there is.
TEST_F(CudaMemoryTest, MemoryThatAnotherProgramTakesIsAnErrorByName) {
  std::set<Lack> seen;
  for (const int64_t left : {0, 4, 12, 14, 20, 30, 64}) {
    constexpr int64_t kAll = 64;
    SetEmulatedMemory(kAll << 20, (kAll - left) << 20);
    EngineOptions options = SmallEngine();
    options.cache_bytes = 4 << 20;
    seen.insert(LackOf(Create(options)));
  }
  EXPECT_EQ(seen, (std::set<Lack>{Lack::kNone, Lack::kWeights, Lack::kCache, Lack::kSteps}));
}

// A piece fits where a slab of small pieces does not.
TEST_F(CudaMemoryTest, SmallPiecesFitInAGpuThatIsNearlyFull) {
  SetEmulatedMemory(1 << 20);
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  std::byte* const first = device->Allocate(300 << 10, MemoryUse::kTensor);
  std::byte* const second = device->Allocate(600 << 10, MemoryUse::kTensor);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(device->Allocate(300 << 10, MemoryUse::kTensor), nullptr);
  device->Free(first, 300 << 10, MemoryUse::kTensor);
  device->Free(second, 600 << 10, MemoryUse::kTensor);
}

// --- the workspace -----------------------------------------------------------------------------

TEST_F(CudaMemoryTest, AWorkspaceHasWhatWasReservedAndNoMore) {
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  Workspace workspace(*device);
  int64_t bytes = 0;
  {
    const Workspace::Measurement measured(workspace);
    {
      const Workspace::Scope scope(workspace);
      workspace.Take(DType::kU8, {100});
      workspace.Take(DType::kF32, {16});
    }
    const Workspace::Scope scope(workspace);
    workspace.Take(DType::kU8, {1});
    bytes = measured.bytes();
  }
  EXPECT_EQ(bytes, 128 + 64);
  EXPECT_EQ(EmulatedCounts().bytes_in_use, 0);
  workspace.Reserve(bytes);
  EXPECT_EQ(EmulatedCounts().bytes_in_use, bytes);
  {
    const Workspace::Scope scope(workspace);
    workspace.Take(DType::kU8, {100});
    EXPECT_THROW(workspace.Take(DType::kU8, {65}), DeviceError);
    workspace.Take(DType::kU8, {64});
  }
  EXPECT_EQ(EmulatedCounts().bytes_in_use, bytes);
  Workspace other(*device);
  SetEmulatedMemory(bytes + 100);
  EXPECT_THROW(other.Reserve(101), DeviceError);
}

// The estimate, by which the cache is sized before the model is loaded, holds what the engine
// measures.
TEST_F(CudaMemoryTest, StepsNeedNoMoreThanThePlanSays) {
  for (const char* const golden : {"v2_lite", "v2_group", "v3_noaux", "moonlight", "v32_sparse",
                                   "glm52", "v3_mtp2", "minicpm3"})
    for (const int64_t tokens : {8, 64, 512}) {
      EngineOptions options = SmallEngine();
      options.max_batch_tokens = tokens;
      options.cache_bytes = 1 << 20;
      options.dtype = "bf16";
      const GoldenEngine engine(golden, options);
      const EngineOptions& resolved = engine.settings.options;
      const int64_t taken =
          EmulatedCounts().bytes_in_use - engine.weight_bytes - resolved.cache_bytes;
      const ModelConfig& config = engine.model->config();
      EXPECT_LE(taken, DeviceStepBytes(config, resolved) + PrefillWorkspaceBytes(config, resolved))
          << golden << ", " << tokens << " tokens";
    }
}

}  // namespace
}  // namespace latte::cuda_memory_test
