// The bytes of one page, over all streams and layers of a cache: what a page operation moves. The
// manager decides, the engine calls these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/cache/latent_cache.h"

namespace latte {

// Requires: two pages of the cache. Not beside a step that writes either.
void CopyPage(const LatentCache& cache, int32_t from, int32_t to);

// Streams in their order, of each its layers: CacheSpec::bytes_per_page bytes.
std::vector<std::byte> SavePage(const LatentCache& cache, int32_t page);

// Requires: bytes of SavePage on a cache of the same spec.
void LoadPage(const LatentCache& cache, int32_t page, std::span<const std::byte> bytes);

}  // namespace latte
