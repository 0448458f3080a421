#include "src/checkpoint/weights_key.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "src/base/file.h"
#include "src/checkpoint/checkpoint.h"

namespace latte {
namespace {

constexpr size_t kPlaces = 256;  // samples per file
constexpr size_t kBytes = 4096;  // bytes per sample: one page of memory

using Hash = std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)>;

void Add(const Hash& hash, std::span<const std::byte> bytes) {
  XXH3_128bits_update(hash.get(), bytes.data(), bytes.size());
}

void AddText(const Hash& hash, std::string_view text) {
  Add(hash, std::as_bytes(std::span(text.data(), text.size())));
}

// Adds samples at equal distances, including the first and the last bytes.
void AddPlaces(const Hash& hash, std::span<const std::byte> file) {
  if (file.size() <= kPlaces * kBytes) {
    Add(hash, file);
    return;
  }
  const size_t last = file.size() - kBytes;
  for (size_t i = 0; i < kPlaces; ++i) Add(hash, file.subspan(last / (kPlaces - 1) * i, kBytes));
  Add(hash, file.subspan(last));
}

// Adds the bytes before the first tensor of every file.
void AddHeaders(const Hash& hash, const Checkpoint& checkpoint) {
  std::vector<int64_t> begins;
  for (const auto& file : checkpoint.files())
    begins.push_back(static_cast<int64_t>(file->bytes().size()));
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    int64_t& begin = begins[static_cast<size_t>(tensor.file_index)];
    begin = std::min(begin, tensor.begin);
  }
  for (size_t i = 0; i < begins.size(); ++i)
    Add(hash, checkpoint.files()[i]->bytes().first(static_cast<size_t>(begins[i])));
}

}  // namespace

Result<std::string> WeightsKey(const std::string& dir) {
  constexpr int64_t kMaxConfig = 1 << 24;
  const Hash hash(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(hash.get());
  LATTE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(dir));
  if (checkpoint.is_gguf()) {
    AddHeaders(hash, checkpoint);
  } else {
    LATTE_ASSIGN_OR_RETURN(const std::string config, ReadFile(dir + "/config.json", kMaxConfig));
    AddText(hash, config);
  }
  for (const auto& [name, t] : checkpoint.tensors())
    AddText(hash,
            fmt::format("|{} {} {} {} {}", name, t.dtype_name, t.file_index, t.begin, t.bytes));
  for (const auto& file : checkpoint.files()) {
    AddText(hash, fmt::format("|{}|", file->bytes().size()));
    AddPlaces(hash, file->bytes());
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(hash.get());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

}  // namespace latte
