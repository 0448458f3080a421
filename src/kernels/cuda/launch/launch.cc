#include "src/kernels/cuda/launch/launch.h"

#include "src/base/math.h"

namespace latte::cuda {

CacheRows CacheRowsOf(const TensorView& pages, CacheRowFormat format, int64_t c, int64_t r) {
  CacheRows out = {};
  out.base = reinterpret_cast<unsigned char*>(pages.data);
  out.bytes = pages.shape[2] * SizeOf(pages.dtype);
  out.c = static_cast<int32_t>(c);
  out.r = static_cast<int32_t>(r);
  out.page_tokens = static_cast<int32_t>(pages.shape[1]);
  out.descale = format.descale;
  out.kind = format.kind;
  if (format.kind == CacheFormat::kPlain) {
    out.element = pages.dtype;
    return out;
  }
  const CacheRowLayout layout = LayoutOf(format.kind, c, r);
  out.rope_at = static_cast<int32_t>(layout.rope_at);
  out.scales_at = static_cast<int32_t>(layout.scales_at);
  return out;
}

Grid LanesGrid(int64_t lanes) { return {CeilDiv(lanes, int64_t{128})}; }
Grid WarpsGrid(int64_t rows) { return {CeilDiv(rows, int64_t{4})}; }

}  // namespace latte::cuda
