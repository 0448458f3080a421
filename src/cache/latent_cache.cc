#include "src/cache/latent_cache.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/check.h"
#include "src/base/math.h"
#include "src/tensor/device_space.h"

namespace latte {
namespace {

std::string NamesOf(const std::vector<CacheStream>& streams) {
  std::vector<std::string_view> names;
  for (const CacheStream& s : streams) names.push_back(Name(s.id));
  return fmt::format("{}", fmt::join(names, ", "));
}

// The place of stream `id` in the list.
size_t IndexOf(const CacheSpec& spec, StreamId id) {
  const auto found = std::ranges::find(spec.streams, id, &CacheStream::id);
  LATTE_CHECK(found != spec.streams.end(), "cache stream '{}': the cache has only: {}", Name(id),
              NamesOf(spec.streams));
  return static_cast<size_t>(found - spec.streams.begin());
}

}  // namespace

std::string_view Name(StreamId id) {
  switch (id) {
    case StreamId::kLatent:
      return "latent";
    case StreamId::kKey:
      return "key";
    case StreamId::kValue:
      return "value";
    case StreamId::kIndexer:
      return "indexer";
  }
  return "?";
}

bool CacheStream::HasRows(int64_t layer) const {
  return !std::ranges::binary_search(without, layer);
}

int64_t CacheStream::RowsBefore(int64_t layer) const {
  return layer - (std::ranges::lower_bound(without, layer) - without.begin());
}

int64_t CacheSpec::bytes_per_token() const {
  int64_t bytes = 0;
  for (const CacheStream& s : streams) bytes += s.width * SizeOf(s.dtype) * s.RowsBefore(layers);
  return bytes;
}

bool CacheSpec::Has(StreamId id) const {
  return std::ranges::count(streams, id, &CacheStream::id) > 0;
}

const CacheStream& CacheSpec::Stream(StreamId id) const { return streams[IndexOf(*this, id)]; }

Result<LatentCache> LatentCache::Create(CacheSpec spec, int64_t pages, const Device& device) {
  LatentCache cache(std::move(spec), pages, device);
  for (const CacheStream& stream : cache.spec_.streams) {
    LATTE_CHECK(std::ranges::count(cache.spec_.streams, stream.id, &CacheStream::id) == 1,
                "cache stream '{}' twice", Name(stream.id));
    LATTE_CHECK(std::ranges::is_sorted(stream.without), "layers without rows: not ascending");
    const int64_t factors[] = {stream.RowsBefore(cache.spec_.layers), pages,
                               cache.spec_.page_tokens, stream.width, SizeOf(stream.dtype)};
    const auto bytes = CheckedProduct(factors);
    std::optional<DeviceMemory> memory =
        DeviceMemory::Allocate(device, bytes.value_or(0), MemoryUse::kCache);
    if (!memory && !device.is_host())
      return tl::unexpected(TooLittleMemory(
          device, bytes.value_or(0),
          fmt::format("{} pages of the cache ({})", pages, Name(stream.id)),
          "use a shorter --context, a smaller --cache-bytes or a smaller --cache-dtype"));
    if (!memory)
      return Exhausted(fmt::format(
          "cache stream '{}': {} pages of {} tokens cannot be reserved; ask for a shorter context",
          Name(stream.id), pages, cache.spec_.page_tokens));
    cache.memory_.push_back(std::move(*memory));
  }
  return cache;
}

TensorView LatentCache::View(StreamId stream, int64_t layer) const {
  const size_t index = IndexOf(spec_, stream);
  const CacheStream& s = spec_.streams[index];
  LATTE_CHECK(s.HasRows(layer), "cache stream '{}': layer {} has no rows", Name(stream), layer);
  const int64_t layer_bytes = pages_ * spec_.page_tokens * s.width * SizeOf(s.dtype);
  return TensorView(memory_[index].data() + s.RowsBefore(layer) * layer_bytes, s.dtype,
                    {pages_, spec_.page_tokens, s.width});
}

}  // namespace latte
