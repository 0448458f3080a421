// The memory of a GPU, over the emulated driver: what loading copies and takes, what steps take, and the errors of a
// GPU that has too little.
#include <cstring>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/limits/device_error.h"
#include "src/base/math.h"
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/model_files.h"
#include "src/checkpoint/model_path.h"
#include "src/checkpoint/weight_memory.h"
#include "src/engine/core/complete.h"
#include "src/engine/core/compute_device.h"
#include "src/engine/core/create_engine.h"
#include "src/engine/core/given_sequence.h"
#include "src/engine/step/step_settings.h"
#include "src/models/device_weights.h"
#include "src/models/registry.h"
#include "src/tensor/cuda/cuda_device.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/support/parameter_name.h"

namespace latte::cuda_memory_test {
namespace {

using testing_support::EmulatedCounts;
using testing_support::SetEmulatedMemory;

constexpr int64_t kPlenty = int64_t{8} << 30;

std::string GoldenDir(const std::string& name) {
  return *ResolveModelPath(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + name);
}

class CudaMemoryTest : public testing::Test {
 protected:
  CudaMemoryTest() { SetEmulatedMemory(kPlenty); }
  ~CudaMemoryTest() override {
    SetEmulatedMemory(kPlenty);
    EXPECT_EQ(EmulatedCounts().bytes_in_use, 0);
    EXPECT_EQ(EmulatedCounts().pinned_bytes, 0);
  }
};

// The counts between two moments.
struct Counted {
  explicit Counted(const emulator::Counts& before) : before_(before), after_(EmulatedCounts()) {}
  int64_t Of(int64_t emulator::Counts::*count) const { return after_.*count - before_.*count; }

 private:
  emulator::Counts before_, after_;
};

// --- weights -----------------------------------------------------------------------------------

std::vector<uint8_t> Numbers(int64_t bytes, uint8_t first) {
  std::vector<uint8_t> out(static_cast<size_t>(bytes));
  std::iota(out.begin(), out.end(), first);
  return out;
}

// Tensors of sizes that no alignment divides, one of them larger than the ring of pinned blocks.
TEST_F(CudaMemoryTest, TensorsOfAnArenaAreApartAlignedAndWhole) {
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  const std::vector<int64_t> sizes = {1, 255, 257, 70'001, (20 << 20) + 13, 3};
  std::vector<std::vector<uint8_t>> host;
  for (size_t i = 0; i < sizes.size(); ++i)
    host.push_back(Numbers(sizes[i], static_cast<uint8_t>(41 * i)));
  int64_t in_arena = 0;
  for (const int64_t size : sizes) in_arena += RoundUp(size, DeviceWeights::kAlignment);

  const emulator::Counts before = EmulatedCounts();
  DeviceWeights weights(*device);
  std::vector<TensorView> placed;
  const Status done = weights.InArena("a test", [&]() -> Status {
    placed.clear();
    for (size_t i = 0; i < sizes.size(); ++i)
      placed.push_back(weights.Place(TensorView(host[i].data(), DType::kU8, {sizes[i]})));
    return {};
  });
  ASSERT_TRUE(done);
  const Counted counted(before);
  EXPECT_EQ(counted.Of(&emulator::Counts::allocations), 1);
  EXPECT_EQ(counted.Of(&emulator::Counts::bytes_in_use), in_arena);
  EXPECT_EQ(counted.Of(&emulator::Counts::pageable_copies), 0);
  // Copies are still under way: their source is the pinned memory, not the host's tensors.
  const std::vector<std::vector<uint8_t>> expected = host;
  for (auto& bytes : host) std::memset(bytes.data(), 0xee, bytes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(placed[i].data) % 256, 0u);
    std::vector<uint8_t> found(expected[i].size());
    device->CopyToHost(found.data(), placed[i].data, sizes[i], nullptr);
    EXPECT_TRUE(found == expected[i]) << "tensor " << i;
  }
  // Two blocks, whatever the size of the weights.
  EXPECT_EQ(EmulatedCounts().pinned_bytes, 2 * cuda::Staging::kBlockBytes);
}

// A tensor of the files has one place; memory that ends may return as another tensor.
TEST_F(CudaMemoryTest, ATensorOfTheFilesIsPlacedOnce) {
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  std::vector<uint8_t> bytes = Numbers(512, 1);
  const TensorView whole(bytes.data(), DType::kU8, {2, 256});
  DeviceWeights weights(*device);
  std::vector<TensorView> placed;
  const auto place = [&]() -> Status {
    placed = {weights.Place(whole), weights.Place(whole), weights.Place(whole.Slice(0, 0, 1)),
              weights.PlaceCopy(whole)};
    return {};
  };
  ASSERT_TRUE(weights.InArena("a test", place));
  EXPECT_EQ(EmulatedCounts().bytes_in_use, 512 + 256 + 512);
  EXPECT_EQ(placed[0].data, placed[1].data);
  EXPECT_NE(placed[0].data, placed[2].data);
  EXPECT_NE(placed[0].data, placed[3].data);
  const std::byte* const first = placed[0].data;
  ASSERT_TRUE(weights.InArena("a later part", place));
  EXPECT_EQ(placed[0].data, first);
  EXPECT_EQ(EmulatedCounts().bytes_in_use, 512 + 256 + 512 + 512);
}

// The bytes of the tensors of a checkpoint, without drafting layers.
struct FileBytes {
  explicit FileBytes(const std::string& dir) {
    const ModelConfig config = *LoadModelConfig(dir);
    Checkpoint checkpoint = *Checkpoint::Open(dir);
    checkpoint.UseCommonNames(config.layers);
    layers = config.layers;
    constants = config.mla.r / 2 * 4;  // rope frequencies
    const std::string drafting = fmt::format("model.layers.{}.", layers);
    for (const auto& [name, tensor] : checkpoint.tensors()) {
      if (name.starts_with(drafting)) continue;
      bytes += tensor.bytes;
      ++tensors;
    }
  }
  int64_t layers = 0, bytes = 0, tensors = 0, constants = 0;
};

class WeightsTest : public CudaMemoryTest, public testing::WithParamInterface<const char*> {};

// Nothing is converted, and nothing is copied twice.
TEST_P(WeightsTest, BytesOnTheDeviceAreTheBytesOfTheFiles) {
  const std::string dir = GoldenDir(GetParam());
  const FileBytes files(dir);
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  const emulator::Counts before = EmulatedCounts();
  ModelOptions wanted;
  wanted.device = device.get();
  int64_t layers_told = 0;
  wanted.repacked = [&](int64_t done, int64_t layers) {
    EXPECT_EQ(done, ++layers_told);
    EXPECT_EQ(layers, files.layers);
  };
  const auto model = LoadModel(dir, wanted).value();
  device->Wait();
  const Counted counted(before);
  EXPECT_EQ(counted.Of(&emulator::Counts::bytes_to_device), files.bytes + files.constants);
  EXPECT_EQ(counted.Of(&emulator::Counts::pageable_copies), 0);
  const int64_t in_use = counted.Of(&emulator::Counts::bytes_in_use);
  EXPECT_GE(in_use, files.bytes + files.constants);
  EXPECT_LE(in_use,
            files.bytes + files.constants + DeviceWeights::kAlignment * (files.tensors + 1));
  EXPECT_EQ(counted.Of(&emulator::Counts::allocations), files.layers + 2);  // input and output
  EXPECT_EQ(layers_told, files.layers);
  // The plan before loading.
  const ModelConfig config = *LoadModelConfig(dir);
  const int64_t planned = WeightMemoryOnDevice(config, *Checkpoint::Open(dir), /*drafts=*/false);
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(in_use), 1024);
}

INSTANTIATE_TEST_SUITE_P(All, WeightsTest,
                         testing::Values("v2_lite", "v3_noaux", "half_split", "glm52", "fp8"),
                         testing_support::ParameterName());

class ConvertedWeightsTest : public CudaMemoryTest,
                             public testing::WithParamInterface<const char*> {};

// Each matrix is read and repacked once; the memory of one layer's repacked weights serves the next, and is another tensor then.
TEST_P(ConvertedWeightsTest, EveryMatrixIsOnTheDevice) {
  const std::string dir = GoldenDir(GetParam());
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  ModelOptions wanted;
  const auto host = LoadModel(dir, wanted).value();
  wanted.device = device.get();
  const emulator::Counts before = EmulatedCounts();
  const auto model = LoadModel(dir, wanted).value();
  const Counted counted(before);
  const int64_t constants = host->config().mla.r / 2 * 4;
  EXPECT_EQ(model->weight_bytes(), host->weight_bytes());
  EXPECT_EQ(counted.Of(&emulator::Counts::bytes_to_device), host->weight_bytes() + constants);
  EXPECT_EQ(counted.Of(&emulator::Counts::allocations), host->config().layers + 2);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertedWeightsTest,
                         testing::Values("gptq", "awq", "pack4_zeros", "int8"),
                         testing_support::ParameterName());

// --- an engine ---------------------------------------------------------------------------------

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
    wanted.mtp = NeedsMtp(options, *LoadModelConfig(GoldenDir(name)));
    model = LoadModel(GoldenDir(name), wanted).value();
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

// The estimate, by which the cache is sized before the model is loaded, holds what the engine measures.
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
