// The encoding of a cached row [latent of C numbers | rope part of R numbers].
// docs/formats/cache.md specifies the formats.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/tensor/cache_format_enum.h"
#include "src/tensor/dtype.h"

namespace latte {

struct CacheRowFormat {
  CacheFormat kind = CacheFormat::kPlain;
  float descale = 1.0f;  // kF8Dense: value = descale · stored number
};

inline constexpr int64_t kF8Group = 128;  // latents that share a scale
inline constexpr int64_t kQ6Group = 32;
inline constexpr int64_t kQ6Chunk = 64;  // latents whose bits are packed together
// Bytes of the values of a chunk; scales are stored separately.
inline constexpr int64_t kQ6ChunkBytes = 40;

// Where the parts of a row begin, in bytes from its start. The latent is first.
struct CacheRowLayout {
  int64_t rope_at, scales_at, bytes;
};
// Requires: kind is not kPlain.
CacheRowLayout LayoutOf(CacheFormat kind, int64_t c, int64_t r);

// The type of a cache, as --cache-dtype names it: rows of format `kind`. kPlain rows hold numbers
// of `dtype`; all others hold bytes (kU8).
struct CacheDType {
  DType dtype = DType::kBF16;
  CacheFormat kind = CacheFormat::kPlain;

  static constexpr CacheDType Plain(DType dtype) { return {dtype, CacheFormat::kPlain}; }
  // Elements of `dtype` in a row.
  int64_t Width(int64_t c, int64_t r) const {
    return kind == CacheFormat::kPlain ? c + r : LayoutOf(kind, c, r).bytes;
  }
  int64_t RowBytes(int64_t c, int64_t r) const { return Width(c, r) * SizeOf(dtype); }
  bool operator==(const CacheDType&) const = default;
};

std::vector<CacheDType> CacheDTypes();    // all of them
std::string_view Name(CacheDType dtype);  // "bf16", "fp8-dense"
// Errors: kInvalidArgument listing the names.
[[nodiscard]] Result<CacheDType> ParseCacheDType(std::string_view text);

}  // namespace latte
