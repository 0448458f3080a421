// Copies, saves and loads the bytes of one page, over all streams and layers of a cache. The cache
// manager decides which pages; a runner calls these functions, in the order of its stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/cache/latent_cache.h"
#include "src/kernels/op.h"
#include "src/tensor/workspace.h"

namespace latte {

// Requires: two pages of the cache; no step writes either of them meanwhile.
void CopyPage(const LatentCache& cache, int32_t from, int32_t to, const Exec& exec);

// The page's bytes: streams in order, within a stream the layers that have rows;
// CacheSpec::bytes_per_page bytes. The workspace is the cache's device's; it is used if that is not
// the host.
std::vector<std::byte> SavePage(const LatentCache& cache, int32_t page, Workspace& workspace,
                                const Exec& exec);

// Requires: `bytes` comes from SavePage on a cache of the same spec.
void LoadPage(const LatentCache& cache, int32_t page, std::span<const std::byte> bytes,
              Workspace& workspace, const Exec& exec);

}  // namespace latte
