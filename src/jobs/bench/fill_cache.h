// Fills caches for benchmarks.
#pragma once

#include <cstring>

#include "src/cache/latent_cache.h"

namespace latte {

// Copies the rows of page 0 to all other pages.
inline void CopyFirstPage(LatentCache& cache) {
  for (const CacheStream& stream : cache.spec().streams)
    for (int64_t layer = 0; layer < cache.spec().layers; ++layer) {
      const TensorView view = cache.View(stream.id, layer);
      const int64_t bytes = view.stride[0] * SizeOf(view.dtype);
      for (int64_t page = 1; page < cache.pages(); ++page)
        std::memcpy(view.data + page * bytes, view.data, static_cast<size_t>(bytes));
    }
}

}  // namespace latte
