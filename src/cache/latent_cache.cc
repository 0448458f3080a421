#include "src/cache/latent_cache.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "src/base/math.h"

namespace latte {

int64_t CacheSpec::bytes_per_token() const {
  int64_t bytes = 0;
  for (const CacheStream& s : streams) bytes += s.width * SizeOf(s.dtype) * layers;
  return bytes;
}

void LatentCache::Unmap::operator()(std::byte* at) const { munmap(at, static_cast<size_t>(bytes)); }

Result<LatentCache> LatentCache::Create(CacheSpec spec, int64_t pages) {
  LatentCache cache(std::move(spec), pages);
  for (const CacheStream& stream : cache.spec_.streams) {
    const int64_t factors[] = {cache.spec_.layers, pages, cache.spec_.page_tokens, stream.width,
                               SizeOf(stream.dtype)};
    const auto bytes = CheckedProduct(factors);
    void* at = MAP_FAILED;
    if (bytes && *bytes > 0)
      at = mmap(nullptr, static_cast<size_t>(*bytes), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      return Exhausted(fmt::format(
          "cache stream '{}': {} pages of {} tokens cannot be reserved; ask for a shorter context",
          stream.name, pages, cache.spec_.page_tokens));
    cache.memory_.emplace_back(static_cast<std::byte*>(at), Unmap{*bytes});
  }
  return cache;
}

TensorView LatentCache::View(size_t stream, int64_t layer) const {
  const CacheStream& s = spec_.streams[stream];
  const int64_t layer_bytes = pages_ * spec_.page_tokens * s.width * SizeOf(s.dtype);
  return TensorView(memory_[stream].get() + layer * layer_bytes, s.dtype,
                    {pages_, spec_.page_tokens, s.width});
}

}  // namespace latte
