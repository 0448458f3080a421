// Fills caches in host memory for benchmarks.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/random.h"
#include "src/cache/latent_cache.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/registry.h"

namespace latte {

// Copies the rows of page 0 to all other pages.
inline void CopyFirstPage(LatentCache& cache) {
  for (const CacheStream& stream : cache.spec().streams)
    for (int64_t layer = 0; layer < cache.spec().layers; ++layer) {
      if (!stream.HasRows(layer)) continue;
      const TensorView view = cache.View(stream.id, layer);
      const int64_t bytes = view.stride[0] * SizeOf(view.dtype);
      for (int64_t page = 1; page < cache.pages(); ++page)
        std::memcpy(view.data + page * bytes, view.data, static_cast<size_t>(bytes));
    }
}

// Fills the index keys of all pages with different random numbers of variance 1. Equal keys would
// have equal scores, of which the first are chosen with little work.
inline void FillIndexKeys(LatentCache& cache, int64_t width, const Exec& exec, uint64_t seed = 2) {
  constexpr int64_t kRows = 4096;
  constexpr float kRoot12 = 3.4641016f;
  const CacheStream& stream = cache.spec().Stream(StreamId::kIndexer);
  const int64_t tokens = cache.pages() * cache.spec().page_tokens;
  Tensor keys(DType::kF32, {kRows, width});
  std::vector<int64_t> slots;
  Random random(seed);
  for (int64_t layer = 0; layer < cache.spec().layers; ++layer)
    for (int64_t begin = 0; stream.HasRows(layer) && begin < tokens; begin += kRows) {
      slots.clear();
      for (int64_t i = begin; i < std::min(tokens, begin + kRows); ++i) slots.push_back(i);
      const TensorView rows = keys.view().Slice(0, 0, std::ssize(slots));
      for (int64_t i = 0; i < rows.elements(); ++i)
        rows.Ptr<float>()[i] =
            kRoot12 * (static_cast<float>(random.Below(1 << 24)) * 0x1p-24f - 0.5f);
      Run<AppendOp>(
          {rows, TensorView(), cache.View(StreamId::kIndexer, layer), slots, stream.row_format},
          exec);
    }
}

}  // namespace latte
