#include "src/cache/page_bytes.h"

#include "src/base/check.h"

namespace latte {
namespace {

// The bytes of a page in one stream and layer.
std::span<std::byte> Slice(const LatentCache& cache, const CacheStream& stream, int64_t layer,
                           int32_t page) {
  LATTE_CHECK(page >= 0 && page < cache.pages(), "page {} of {}", page, cache.pages());
  const int64_t bytes = cache.spec().page_tokens * stream.width * SizeOf(stream.dtype);
  return {cache.View(stream.id, layer).data + page * bytes, static_cast<size_t>(bytes)};
}

template <class Visit>
void ForEachSlice(const LatentCache& cache, int32_t page, const Visit& visit) {
  for (const CacheStream& stream : cache.spec().streams)
    for (int64_t layer = 0; layer < cache.spec().layers; ++layer)
      if (stream.HasRows(layer)) visit(Slice(cache, stream, layer, page), stream, layer);
}

}  // namespace

void CopyPage(const LatentCache& cache, int32_t from, int32_t to, DeviceStream order) {
  if (from == to) return;
  ForEachSlice(cache, from,
               [&](std::span<std::byte> source, const CacheStream& stream, int64_t layer) {
                 cache.device().Copy(Slice(cache, stream, layer, to).data(), source.data(),
                                     std::ssize(source), order);
               });
}

std::vector<std::byte> SavePage(const LatentCache& cache, int32_t page, DeviceStream order) {
  std::vector<std::byte> bytes(static_cast<size_t>(cache.spec().bytes_per_page()));
  std::byte* to = bytes.data();
  ForEachSlice(cache, page, [&](std::span<std::byte> source, const CacheStream&, int64_t) {
    cache.device().CopyToHost(to, source.data(), std::ssize(source), order);
    to += source.size();
  });
  return bytes;
}

void LoadPage(const LatentCache& cache, int32_t page, std::span<const std::byte> bytes,
              DeviceStream order) {
  LATTE_CHECK(std::ssize(bytes) == cache.spec().bytes_per_page(), "{} bytes for a page of {}",
              bytes.size(), cache.spec().bytes_per_page());
  ForEachSlice(cache, page, [&](std::span<std::byte> target, const CacheStream&, int64_t) {
    cache.device().CopyFromHost(target.data(), bytes.data(), std::ssize(target), order);
    bytes = bytes.subspan(target.size());
  });
}

}  // namespace latte
