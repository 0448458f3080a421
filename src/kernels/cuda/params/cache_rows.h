#pragma once

#include "src/kernels/cuda/params/types.h"
#include "src/tensor/cache_format_enum.h"

namespace latte::cuda {

// The rows of a cache stream in one layer, and how one is stored (src/tensor/cache_format.h).
struct CacheRows {
  unsigned char* base;         // [pages · page_tokens, bytes]
  int64_t bytes;               // of a row
  int32_t c, r;                // numbers of the latent and of the rope part
  int32_t rope_at, scales_at;  // bytes from the begin of a quantised row
  int32_t page_tokens;
  float descale;    // of kF8Dense
  Element element;  // of kPlain
  CacheFormat kind;
};

}  // namespace latte::cuda
