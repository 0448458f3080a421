// any.append, any.norm_rope_append, any.gather_pages, any.copy_page: rows of the cache in every
// format.
#pragma once

#include "src/kernels/cuda/any/norm.cuh"
#include "src/kernels/cuda/any/rows.cuh"
#include "src/kernels/cuda/common/store_cache_row.cuh"
#include "src/kernels/cuda/params/cache.h"

namespace latte::cuda {

// A warp a token.
LATTE_DEVICE void Append(const AppendParams& p) {
  const int t = RowOfWarp();
  if (t >= p.t) return;
  StoreRow(p.cache, LoadGlobal(p.slots + t), p.first + t * p.first_stride,
           p.second + t * p.second_stride);
}

// A warp a token. The bytes are those of RmsNorm, then Rope, then Append.
LATTE_DEVICE void NormRopeAppend(const NormRopeAppendParams& p) {
  const int t = RowOfWarp();
  if (t >= p.t) return;
  float* const latent = p.latent + t * p.latent_stride;
  const int half = p.r / 2;
  const float inverse = InverseRms(latent, p.c, p.eps);
  for (int i = Lane(); i < p.c; i += kWarp)
    StoreGlobal(latent + i,
                Mul(Mul(LoadGlobal(latent + i), inverse), LoadElement(p.w, p.w_type, i)));
  // Head −1 is k_rope.
  for (int i = Lane(); p.cos != nullptr && i < (p.h + 1) * half; i += kWarp) {
    const int head = i / half - 1, j = i % half;
    float* const x = head < 0 ? latent + p.c : p.q_rope + t * p.rope_stride + head * p.rope_head;
    RotatePair(x, j, half, p.interleaved != 0, LoadGlobal(p.cos + int64_t{t} * half + j),
               LoadGlobal(p.sin + int64_t{t} * half + j));
  }
  if (p.cache.base == nullptr) return;
  SyncWarp();
  StoreRow(p.cache, LoadGlobal(p.slots + t), latent, latent + p.c);
}

LATTE_DEVICE void GatherPages(const GatherPagesParams& p) {
  const int64_t i = LaneOfGrid();
  const int width = p.cache.c + p.cache.r;
  if (i >= int64_t{p.s} * width) return;
  const int64_t key = p.key_begin + i / width;
  const int64_t page = LoadGlobal(p.pages + key / p.cache.page_tokens);
  const int64_t row = page * p.cache.page_tokens + key % p.cache.page_tokens;
  StoreGlobal(p.y + i, RowOf(p.cache, row).Value(static_cast<int>(i % width)));
}

// Grid: [⌈bytes/128⌉, layers].
LATTE_DEVICE void CopyPage(const CopyPageParams& p) {
  const int64_t i = LaneOfGrid();
  const int layer = BlockY();
  if (i >= p.page_bytes) return;
  unsigned char* const packed = p.packed + layer * p.page_bytes + i;
  const unsigned char* const from = p.from < 0 ? packed : p.layers[layer] + p.from + i;
  unsigned char* const to = p.to < 0 ? packed : p.layers[layer] + p.to + i;
  StoreGlobal(to, LoadGlobal(from));
}

}  // namespace latte::cuda
