// Copies, saves and loads the bytes of one page, over all streams and layers of a cache. The cache
// manager decides which pages; the engine calls these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/cache/latent_cache.h"

namespace latte {

// All three act in the order of a stream of the cache's device.

// Requires: two pages of the cache; no step writes either of them meanwhile.
void CopyPage(const LatentCache& cache, int32_t from, int32_t to, DeviceStream order = nullptr);

// The page's bytes: streams in order, within a stream the layers that have rows; CacheSpec::bytes_per_page bytes.
std::vector<std::byte> SavePage(const LatentCache& cache, int32_t page,
                                DeviceStream order = nullptr);

// Requires: `bytes` comes from SavePage on a cache of the same spec.
void LoadPage(const LatentCache& cache, int32_t page, std::span<const std::byte> bytes,
              DeviceStream order = nullptr);

}  // namespace latte
