#include "src/checkpoint/weight_memory.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "src/base/limits/memory.h"
#include "src/base/math.h"
#include "src/checkpoint/config/model_size.h"
#include "src/checkpoint/formats/common/weight_format.h"

namespace latte {
namespace {

// The bytes of a file that stay in memory permanently.
int64_t BytesInTmpfs(const std::string& path) {
  struct statfs system = {};
  struct stat file = {};
  if (statfs(path.c_str(), &system) != 0 || stat(path.c_str(), &file) != 0) return 0;
  if (system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC) return 0;
  constexpr int64_t kStatBytes = 512;  // the unit of st_blocks, on every file system
  return static_cast<int64_t>(file.st_blocks) * kStatBytes;
}

// The layer of a tensor of a decoder or drafting layer; −1 for others.
int64_t LayerOf(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  int64_t layer = -1;
  if (name.starts_with(kLayers))
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  return layer;
}

bool IsInBlocks(const StoredTensor& tensor) {
  const Result<DType> dtype = ToDType(tensor.dtype_name);
  return dtype && IsBlocks(*dtype);
}

int64_t ValuesOf(const StoredTensor& tensor) {
  int64_t out = 1;
  for (const int64_t size : tensor.shape) out *= size;
  return out;
}

// W_UK and W_UV as bf16, if they lie in blocks or in two tensors. Files may have them in both ways.
int64_t KvBCopyBytes(const Checkpoint& checkpoint) {
  int64_t whole = 0, parts = 0;
  bool is_whole = false;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    const int64_t values = ValuesOf(tensor);
    if (name.ends_with(".attn_kv_b.weight")) {
      is_whole = true;
      if (IsInBlocks(tensor)) whole += values;
    } else if (name.ends_with(".attn_k_b.weight") || name.ends_with(".attn_v_b.weight")) {
      parts += values;
    }
  }
  return SizeOf(DType::kBF16) * (is_whole ? whole : parts);
}

// The bytes of a tensor on a device. The matrices of a stack are placed one by one, gate and up
// apart. W_UK and W_UV that lie in blocks are there as bf16.
int64_t BytesOnDevice(std::string_view name, const StoredTensor& tensor) {
  constexpr int64_t kAlignment = 256;
  const bool is_kv_b = name.ends_with("k_b_proj.weight") || name.ends_with("v_b_proj.weight");
  if (is_kv_b && IsInBlocks(tensor))
    return RoundUp(SizeOf(DType::kBF16) * ValuesOf(tensor), kAlignment);
  if (is_kv_b || tensor.shape.size() != 3) return RoundUp(tensor.bytes, kAlignment);
  const bool is_pair = name.find("gate_up") != name.npos && tensor.shape[1] > 1;
  const int64_t matrices = std::max<int64_t>(tensor.shape[0] * (is_pair ? 2 : 1), 1);
  return RoundUp(CeilDiv(tensor.bytes, matrices), kAlignment) * matrices;
}

}  // namespace

int64_t WeightMemory(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const auto& file : checkpoint.files()) {
    const auto size = static_cast<int64_t>(file->bytes().size());
    bytes += std::max<int64_t>(0, size - BytesInTmpfs(file->path()));
  }
  return checkpoint.is_gguf() ? bytes + KvBCopyBytes(checkpoint) : bytes;
}

int64_t WeightMemoryOnDevice(const ModelConfig& config, const Checkpoint& checkpoint, bool drafts) {
  Checkpoint named = checkpoint;
  named.UseCommonNames(config.layers);
  int64_t bytes = 0;
  for (const auto& [name, tensor] : named.tensors())
    if (drafts || LayerOf(name) < config.layers) bytes += BytesOnDevice(name, tensor);
  return bytes;
}

std::optional<int64_t> MemoryForWeights(const ModelConfig& config, const Checkpoint& checkpoint) {
  // Repacked weights take address space again.
  return AvailableMemory(config.quant.Repacks() ? 0 : WeightMemory(checkpoint));
}

std::string SmallerModel(const ModelConfig& config) {
  const std::string_view smaller = config.quant.format().smaller;
  if (config.wrapped || smaller.empty()) return "a smaller model";
  return fmt::format("a smaller copy (latte quantize MODEL OUT {})", smaller);
}

namespace {

// What to expect of weights that are mapped: each token uses the chosen experts, of which the same
// part is missing as of all weights.
std::string ReadPerToken(const ModelConfig& config, int64_t weight_bytes, int64_t available_bytes) {
  const auto total = static_cast<double>(std::max<int64_t>(CountParams(config).total(), 1));
  const double active = static_cast<double>(CountActiveParams(config).total()) / total;
  const auto missing = static_cast<double>(weight_bytes - available_bytes);
  return fmt::format("of the {} of each token, about {} are read from disk",
                     MemoryText(static_cast<int64_t>(active * static_cast<double>(weight_bytes))),
                     MemoryText(static_cast<int64_t>(active * missing)));
}

}  // namespace

std::optional<std::string> LargerThanMemory(const ModelConfig& config, int64_t weight_bytes,
                                            std::optional<int64_t> available_bytes) {
  if (!available_bytes || weight_bytes <= *available_bytes) return std::nullopt;
  return fmt::format(
      "the weights need {} of memory, {} are available: {}; use {}, or give it more memory",
      MemoryText(weight_bytes), MemoryText(*available_bytes),
      config.quant.Repacks() ? "loading, which repacks them, may run out of it"
                             : ReadPerToken(config, weight_bytes, *available_bytes),
      SmallerModel(config));
}

}  // namespace latte
