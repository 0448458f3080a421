// The layout of cached rows in tasks.
#pragma once

#include "src/kernels/cpu/target.h"
#include "src/tensor/cache_format.h"

namespace latte::cpu {

inline CachedRowLayout CachedRowLayoutOf(DType cache, CacheRowFormat row_format, int64_t c,
                                         int64_t r) {
  CachedRowLayout out;
  out.kind = row_format.kind;
  out.element = cache;
  out.c = c;
  out.r = r;
  out.descale = row_format.descale;
  if (row_format.kind == CacheFormat::kPlain) {
    out.bytes = (c + r) * SizeOf(cache);
    return out;
  }
  const CacheRowLayout layout = LayoutOf(row_format.kind, c, r);
  out.bytes = layout.bytes;
  out.rope_at = layout.rope_at;
  out.scales_at = layout.scales_at;
  return out;
}

}  // namespace latte::cpu
