#include "src/cache/latent_cache.h"

#include <fmt/format.h>

#include "src/base/math.h"

namespace latte {

int64_t CacheSpec::bytes_per_token() const {
  int64_t bytes = 0;
  for (const CacheStream& s : streams) bytes += s.width * SizeOf(s.dtype) * layers;
  return bytes;
}

Result<LatentCache> LatentCache::Create(CacheSpec spec, int64_t pages) {
  LatentCache cache(std::move(spec), pages);
  for (const CacheStream& stream : cache.spec_.streams) {
    const int64_t factors[] = {cache.spec_.layers, pages, cache.spec_.page_tokens, stream.width,
                               SizeOf(stream.dtype)};
    const auto bytes = CheckedProduct(factors);
    std::optional<AnonymousMemory> memory =
        AnonymousMemory::Reserve(bytes.value_or(0), PageSize::kUsual);
    if (!memory)
      return Exhausted(fmt::format(
          "cache stream '{}': {} pages of {} tokens cannot be reserved; ask for a shorter context",
          stream.name, pages, cache.spec_.page_tokens));
    cache.memory_.push_back(std::move(*memory));
  }
  return cache;
}

TensorView LatentCache::View(size_t stream, int64_t layer) const {
  const CacheStream& s = spec_.streams[stream];
  const int64_t layer_bytes = pages_ * spec_.page_tokens * s.width * SizeOf(s.dtype);
  return TensorView(memory_[stream].data() + layer * layer_bytes, s.dtype,
                    {pages_, spec_.page_tokens, s.width});
}

}  // namespace latte
