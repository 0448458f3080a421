// The weights on a GPU, over the emulated driver: what loading copies and takes.
#include <cstring>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "src/base/math.h"
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/model_path.h"
#include "src/checkpoint/weight_memory.h"
#include "src/models/device_weights.h"
#include "src/models/registry.h"
#include "src/tensor/cuda/cuda_device.h"
#include "tests/cuda/support/emulated_counts.h"
#include "tests/cuda/support/golden_logits.h"
#include "tests/support/parameter_name.h"

namespace latte::cuda_weights_test {
namespace {

using testing_support::Counted;
using testing_support::EmulatedCounts;

using WeightsTest = testing_support::OnEmulatedGpu;

std::vector<uint8_t> Numbers(int64_t bytes, uint8_t first) {
  std::vector<uint8_t> out(static_cast<size_t>(bytes));
  std::iota(out.begin(), out.end(), first);
  return out;
}

// Tensors of sizes that no alignment divides, one of them larger than the ring of pinned blocks.
TEST_F(WeightsTest, TensorsOfAnArenaAreApartAlignedAndWhole) {
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
TEST_F(WeightsTest, ATensorOfTheFilesIsPlacedOnce) {
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

// The bytes that a device gets of a golden model besides its tensors as they lie in the files.
struct Converted {
  explicit Converted(const std::string& dir) {
    const ModelConfig config = *LoadModelConfig(dir);
    constants = config.mla.r / 2 * SizeOf(DType::kF32);
    if (config.scales.head != 1.0) constants += config.mla.d * SizeOf(DType::kF32);
    Checkpoint checkpoint = *Checkpoint::Open(dir);
    checkpoint.UseCommonNames(config.layers);
    for (const auto& [name, tensor] : checkpoint.tensors()) {
      if (!name.ends_with(".kv_b_proj.weight") || !IsBlocks(*ToDType(tensor.dtype_name))) continue;
      const int64_t layer = std::stoll(name.substr(std::string_view("model.layers.").size()));
      if (layer < config.layers)
        rounded += tensor.shape[0] * tensor.shape[1] * SizeOf(DType::kBF16) - tensor.bytes;
    }
  }
  int64_t constants = 0;  // frequencies of rotary embedding, and a last norm that is scaled
  int64_t rounded = 0;    // what W_UK and W_UV grow by when they are rounded to bf16
};

// The bytes of the tensors of a checkpoint that its decoder uses.
int64_t DecoderBytes(const std::string& dir) {
  const ModelConfig config = *LoadModelConfig(dir);
  Checkpoint checkpoint = *Checkpoint::Open(dir);
  checkpoint.UseCommonNames(config.layers);
  int64_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    constexpr std::string_view kLayers = "model.layers.";
    if (name.starts_with(kLayers) && std::stoll(name.substr(kLayers.size())) >= config.layers)
      continue;  // drafts
    bytes += tensor.bytes;
  }
  return bytes;
}

class GoldenWeightsTest : public WeightsTest, public testing::WithParamInterface<const char*> {
 protected:
  std::string dir_ = *ResolveModelPath(testing_support::GoldenDir(GetParam()));
};

// Each matrix is copied once, and nothing else is. Where integers are repacked, the memory of one
// layer's repacked weights serves the next, and is another tensor then.
TEST_P(GoldenWeightsTest, TheDeviceHasTheBytesThatTheHostReads) {
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  ModelOptions wanted;
  const auto host = LoadModel(dir_, wanted).value();
  const int64_t layers = host->config().layers;
  wanted.device = device.get();
  int64_t layers_told = 0;
  wanted.repacked = [&](int64_t done, int64_t of) {
    EXPECT_EQ(done, ++layers_told);
    EXPECT_EQ(of, layers);
  };
  const emulator::Counts before = EmulatedCounts();
  const auto model = LoadModel(dir_, wanted).value();
  device->Wait();
  const Counted counted(before);
  const Converted converted(dir_);
  const int64_t bytes = host->weight_bytes() + converted.rounded + converted.constants;
  EXPECT_EQ(model->weight_bytes(), host->weight_bytes());
  EXPECT_EQ(counted.Of(&emulator::Counts::bytes_to_device), bytes);
  EXPECT_EQ(counted.Of(&emulator::Counts::pageable_copies), 0);
  EXPECT_EQ(counted.Of(&emulator::Counts::allocations), layers + 2);  // input and output
  EXPECT_EQ(layers_told, layers);
  EXPECT_GE(counted.Of(&emulator::Counts::bytes_in_use), bytes);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenWeightsTest,
                         testing::Values("awq", "axk1", "fp8", "gguf_glm52", "gguf_k2",
                                         "gguf_minicpm3", "gguf_mistral4", "gguf_v2", "gguf_v3",
                                         "gguf_v32", "glm", "glm5", "glm52", "glm52_mtp", "gptq",
                                         "half_split", "int8", "minicpm3", "minicpm3_short",
                                         "mistral4", "mistral4_fp8", "moonlight", "nope", "pack4",
                                         "pack4_zeros", "pack8", "v2_group", "v2_lite", "v32",
                                         "v32_mtp", "v32_sparse", "v3_mtp2", "v3_noaux"),
                         testing_support::ParameterName());

class PlannedWeightsTest : public GoldenWeightsTest {};

// The plan, by which the cache is sized before the model is loaded.
TEST_P(PlannedWeightsTest, ThePlanIsWhatLoadingTakes) {
  const ModelConfig config = *LoadModelConfig(dir_);
  const auto device = std::move(cuda::CudaDevice::Open(0)).value();
  const emulator::Counts before = EmulatedCounts();
  ModelOptions wanted;
  wanted.device = device.get();
  const auto model = LoadModel(dir_, wanted).value();
  const int64_t taken = Counted(before).Of(&emulator::Counts::bytes_in_use);
  const int64_t planned = WeightMemoryOnDevice(config, *Checkpoint::Open(dir_), /*drafts=*/false);
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(taken), 2048);
}

// Not here: integers that are repacked; gguf_glm52, whose file has indexers that no layer uses.
INSTANTIATE_TEST_SUITE_P(All, PlannedWeightsTest,
                         testing::Values("axk1", "fp8", "gguf_k2", "gguf_minicpm3", "gguf_mistral4",
                                         "gguf_v2", "gguf_v3", "gguf_v32", "glm", "glm5", "glm52",
                                         "glm52_mtp", "half_split", "minicpm3", "minicpm3_short",
                                         "mistral4", "mistral4_fp8", "moonlight", "nope",
                                         "v2_group", "v2_lite", "v32", "v32_mtp", "v32_sparse",
                                         "v3_mtp2", "v3_noaux"),
                         testing_support::ParameterName());

class StoredWeightsTest : public GoldenWeightsTest {};

// The host reads all bytes of the files and no others: nothing is dequantised.
TEST_P(StoredWeightsTest, TheHostReadsTheBytesOfTheFiles) {
  EXPECT_EQ(LoadModel(dir_, {}).value()->weight_bytes(), DecoderBytes(dir_));
}

// Not here: integers that are repacked; models with a tensor that nothing uses, with W_UK and W_UV
// in two tensors, or with a norm or scales that are converted to f32.
INSTANTIATE_TEST_SUITE_P(All, StoredWeightsTest,
                         testing::Values("fp8", "glm", "glm5", "glm52", "glm52_mtp", "half_split",
                                         "mistral4", "moonlight", "nope", "v2_group", "v2_lite",
                                         "v32", "v32_mtp", "v32_sparse", "v3_mtp2", "v3_noaux",
                                         "gguf_v2"),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::cuda_weights_test
