// The memory of the cache pages. A cache is a list of streams (latents, or expanded keys and
// values). One page id indexes all streams and layers, so rollback, eviction and sharing act on all
// of them at once. Starts no computation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/limits/memory.h"
#include "src/tensor/cache_format.h"
#include "src/tensor/tensor.h"

namespace latte {

// One row that is cached per token and layer.
struct CacheStream {
  std::string name;   // "latent", "key", "value"
  int64_t width = 0;  // elements per token and layer; bytes if the format is quantised
  DType dtype = DType::kBF16;
  CacheRowFormat row_format = {};
};

struct CacheSpec {
  std::vector<CacheStream> streams;
  int64_t layers = 0;
  int64_t page_tokens = 64;  // power of two, 16 … 256

  int64_t bytes_per_token() const;
  int64_t bytes_per_page() const { return bytes_per_token() * page_tokens; }
};

// Immutable layout, mutable contents; thread-compatible.
class LatentCache {
 public:
  // Reserves address space for `pages` pages; memory is committed when a page is first written.
  // Errors: kExhausted with the requested size.
  [[nodiscard]] static Result<LatentCache> Create(CacheSpec spec, int64_t pages);

  const CacheSpec& spec() const { return spec_; }
  int64_t pages() const { return pages_; }

  // Pages of one stream and layer: [pages, page_tokens, width].
  TensorView View(size_t stream, int64_t layer) const;

 private:
  LatentCache(CacheSpec spec, int64_t pages) : spec_(std::move(spec)), pages_(pages) {}

  CacheSpec spec_;
  int64_t pages_ = 0;
  std::vector<AnonymousMemory> memory_;  // per stream: [layers, pages, page_tokens, width]
};

}  // namespace latte
