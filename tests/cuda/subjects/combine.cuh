// any.combine: merges the splits of each row in index order, one warp a row, 8 rows a block.
//
//   w_s = exp(lse_s − max)     o = Σ w_s·o_s / Σ w_s     lse = max + ln Σ w_s
#pragma once

#include "src/kernels/cuda/words/device.cuh"
#include "tests/cuda/subjects/mla_decode.h"

namespace latte::cuda {

constexpr int kCombineThreads = 256;

LATTE_DEVICE void Combine(const CombineParams& p) {
  constexpr float kMinusInf = -__builtin_huge_valf();
  constexpr float kLog2E = 1.44269504089f;
  const int lane = Thread() % 32;
  const int64_t row = int64_t{BlockX()} * (kCombineThreads / 32) + Thread() / 32;
  if (row >= p.rows) return;
  float top = kMinusInf;
  for (int s = 0; s < p.splits; ++s) top = Max(top, LoadGlobal(p.lse + s * p.rows + row));
  float sum = 0;
  Floats2 o[8] = {};  // dims 2·lane + 64·j and the next
  for (int s = 0; s < p.splits; ++s) {
    const float lse = LoadGlobal(p.lse + s * p.rows + row);
    if (lse == kMinusInf) continue;
    const float w = Exp2((lse - top) * kLog2E);
    sum += w;
    const float* g_o = p.o + (s * p.rows + row) * kLatent + 2 * lane;
    LATTE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const Floats2 part = LoadGlobal(reinterpret_cast<const Floats2*>(g_o + 64 * j));
      o[j].x += w * part.x;
      o[j].y += w * part.y;
    }
  }
  const float inverse = sum > 0 ? 1 / sum : 0;
  float* g_out = p.o_out + row * kLatent + 2 * lane;
  LATTE_UNROLL
  for (int j = 0; j < 8; ++j)
    StoreGlobal(reinterpret_cast<Floats2*>(g_out + 64 * j),
                Floats2{o[j].x * inverse, o[j].y * inverse});
  if (lane == 0)
    StoreGlobal(p.lse_out + row, sum > 0 ? top + Log2(sum) * 0.69314718056f : kMinusInf);
}

}  // namespace latte::cuda
