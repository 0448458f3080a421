#include "src/checkpoint/weight_memory.h"

#include <algorithm>

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "src/base/limits/memory.h"
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

}  // namespace

int64_t WeightMemory(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const auto& file : checkpoint.files()) {
    const auto size = static_cast<int64_t>(file->bytes().size());
    bytes += std::max<int64_t>(0, size - BytesInTmpfs(file->path()));
  }
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

std::optional<std::string> LargerThanMemory(const ModelConfig& config, int64_t weight_bytes,
                                            std::optional<int64_t> available_bytes) {
  if (!available_bytes || weight_bytes <= *available_bytes) return std::nullopt;
  return fmt::format(
      "the weights need {} of memory, {} are available: {}; use {}, or give it more memory",
      MemoryText(weight_bytes), MemoryText(*available_bytes),
      config.quant.Repacks() ? "loading, which repacks them, may run out of it"
                             : "what does not fit is read from disk for every token",
      SmallerModel(config));
}

}  // namespace latte
