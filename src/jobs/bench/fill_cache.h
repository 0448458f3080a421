// Fills caches for benchmarks.
#pragma once

#include <cstring>

#include "src/cache/latent_cache.h"

namespace latte {

// Copies the rows of page 0 to all other pages.
inline void CopyFirstPage(LatentCache& cache) {
  for (size_t s = 0; s < cache.spec().streams.size(); ++s)
    for (int64_t layer = 0; layer < cache.spec().layers; ++layer) {
      const TensorView view = cache.View(s, layer);
      const int64_t bytes = view.stride[0] * SizeOf(view.dtype);
      for (int64_t page = 1; page < cache.pages(); ++page)
        std::memcpy(view.data + page * bytes, view.data, static_cast<size_t>(bytes));
    }
}

}  // namespace latte
