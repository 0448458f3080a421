#include "src/cache/page_bytes.h"

#include <cstring>

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
      visit(Slice(cache, stream, layer, page), stream, layer);
}

}  // namespace

void CopyPage(const LatentCache& cache, int32_t from, int32_t to) {
  if (from == to) return;
  ForEachSlice(cache, from,
               [&](std::span<std::byte> source, const CacheStream& stream, int64_t layer) {
                 std::memcpy(Slice(cache, stream, layer, to).data(), source.data(), source.size());
               });
}

std::vector<std::byte> SavePage(const LatentCache& cache, int32_t page) {
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(cache.spec().bytes_per_page()));
  ForEachSlice(cache, page, [&](std::span<std::byte> source, const CacheStream&, int64_t) {
    bytes.insert(bytes.end(), source.begin(), source.end());
  });
  return bytes;
}

void LoadPage(const LatentCache& cache, int32_t page, std::span<const std::byte> bytes) {
  LATTE_CHECK(std::ssize(bytes) == cache.spec().bytes_per_page(), "{} bytes for a page of {}",
              bytes.size(), cache.spec().bytes_per_page());
  ForEachSlice(cache, page, [&](std::span<std::byte> target, const CacheStream&, int64_t) {
    std::memcpy(target.data(), bytes.data(), target.size());
    bytes = bytes.subspan(target.size());
  });
}

}  // namespace latte
