// The memory of the cache pages. A cache is a list of streams (latents, or expanded keys and
// values), found by name. One page id indexes all streams and layers, so rollback, eviction and
// sharing act on all of them at once. Starts no computation.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/tensor/cache_format.h"
#include "src/tensor/device.h"
#include "src/tensor/tensor.h"

namespace latte {

// The content of a row of a stream, for one token and layer.
enum class StreamId : uint8_t {
  kLatent,   // [c_kv | k_rope]
  kKey,      // expanded keys of all heads
  kValue,    // expanded values of all heads
  kIndexer,  // the key by which sparse attention chooses positions
};

// "latent", "key", "value", "indexer": in messages and in prefix files.
std::string_view Name(StreamId id);

// One row that is cached per token and layer, in all layers or in some.
struct CacheStream {
  StreamId id = StreamId::kLatent;
  int64_t width = 0;  // elements per token and layer; bytes if the format is quantised
  DType dtype = DType::kBF16;
  CacheRowFormat row_format = {};
  // Layers of the cache that have no rows, ascending. Usually none; GLM-5.2 has layers that choose
  // no keys of their own, and so have no index keys.
  std::vector<int64_t> without = {};

  bool HasRows(int64_t layer) const;
  // The number of layers before `layer` that have rows.
  int64_t RowsBefore(int64_t layer) const;
};

struct CacheSpec {
  std::vector<CacheStream> streams;  // each id at most once, in any order
  int64_t layers = 0;
  int64_t page_tokens = 64;  // power of two, 16 … 256

  int64_t bytes_per_token() const;
  int64_t bytes_per_page() const { return bytes_per_token() * page_tokens; }

  bool Has(StreamId id) const;
  // The stream `id`. Requires: the cache has it.
  const CacheStream& Stream(StreamId id) const;
};

// Immutable layout, mutable contents; thread-compatible.
class LatentCache {
 public:
  // Takes memory of `device` for `pages` pages. On the host this is address space; memory is
  // committed when a page is first written. Errors: kExhausted with the requested size.
  [[nodiscard]] static Result<LatentCache> Create(CacheSpec spec, int64_t pages,
                                                  const Device& device = HostDevice());

  const CacheSpec& spec() const { return spec_; }
  int64_t pages() const { return pages_; }
  const Device& device() const { return *device_; }

  // Pages of one stream and layer: [pages, page_tokens, width]. Requires: the cache has the stream,
  // and the stream rows in that layer.
  TensorView View(StreamId stream, int64_t layer) const;

 private:
  LatentCache(CacheSpec spec, int64_t pages, const Device& device)
      : spec_(std::move(spec)), pages_(pages), device_(&device) {}

  CacheSpec spec_;
  int64_t pages_ = 0;
  const Device* device_;
  std::vector<DeviceMemory> memory_;  // per stream: [layers with rows, pages, page_tokens, width]
};

}  // namespace latte
