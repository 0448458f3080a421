// Pointwise `any` kernels: rows that are moved, rounded, rotated, added or checked.
#pragma once

#include "src/kernels/cuda/any/gemm.cuh"
#include "src/kernels/cuda/any/norm.cuh"
#include "src/kernels/cuda/common/elements.cuh"
#include "src/kernels/cuda/common/sin_cos.cuh"
#include "src/kernels/cuda/params/rows.h"

namespace latte::cuda {

inline constexpr int kPointThreads = 128;

// The index of this lane in a grid of one dimension.
LATTE_DEVICE int64_t LaneOfGrid() { return int64_t{BlockX()} * kPointThreads + Thread(); }

LATTE_DEVICE void RopeAngles(const RopeAnglesParams& p) {
  const int64_t i = LaneOfGrid();
  if (i >= int64_t{p.t} * p.half) return;
  const float position = static_cast<float>(LoadGlobal(p.positions + i / p.half));
  const float angle = Mul(position, LoadGlobal(p.frequency + i % p.half));
  double sine, cosine;
  SinCos(static_cast<double>(angle), &sine, &cosine);
  StoreGlobal(p.cos + i, static_cast<float>(cosine * p.amplitude));
  StoreGlobal(p.sin + i, static_cast<float>(sine * p.amplitude));
}

// Pair j of x, rotated by the angle of (cos, sin).
LATTE_DEVICE void RotatePair(float* x, int j, int half, bool interleaved, float cos, float sin) {
  float* const first = x + (interleaved ? 2 * j : j);
  float* const second = first + (interleaved ? 1 : half);
  const float a = LoadGlobal(first), b = LoadGlobal(second);
  StoreGlobal(first, Sub(Mul(a, cos), Mul(b, sin)));
  StoreGlobal(second, Add(Mul(a, sin), Mul(b, cos)));
}

LATTE_DEVICE void Rope(const RopeParams& p) {
  const int half = p.r / 2;
  const int64_t i = LaneOfGrid();
  if (i >= int64_t{p.m} * p.g * half) return;
  const int64_t m = i / half / p.g, g = i / half % p.g;
  const int j = static_cast<int>(i % half);
  RotatePair(p.x + m * p.stride + g * p.group_stride, j, half, p.interleaved != 0,
             LoadGlobal(p.cos + m * half + j), LoadGlobal(p.sin + m * half + j));
}

LATTE_DEVICE void SiluMul(const SiluMulParams& p) {
  const int64_t i = LaneOfGrid();
  if (i < p.count) StoreGlobal(p.y + i, Mul(Silu(LoadGlobal(p.gate + i)), LoadGlobal(p.up + i)));
}

LATTE_DEVICE void AddRows(const AddParams& p) {
  const int64_t i = LaneOfGrid();
  if (i < p.count) StoreGlobal(p.y + i, Add(LoadGlobal(p.y + i), LoadGlobal(p.x + i)));
}

LATTE_DEVICE void Gather(const GatherParams& p) {
  const int64_t i = LaneOfGrid();
  if (i >= int64_t{p.m} * p.d) return;
  const int64_t from = LoadGlobal(p.ids + i / p.d) * p.x_stride + i % p.d;
  if (p.x_type == Element::kI8)
    return StoreGlobal(static_cast<int8_t*>(p.y) + i,
                       LoadGlobal(static_cast<const int8_t*>(p.x) + from));
  if (p.x_type == p.y_type && p.x_type != Element::kF32)
    return StoreGlobal(static_cast<uint16_t*>(p.y) + i,
                       LoadGlobal(static_cast<const uint16_t*>(p.x) + from));
  StoreGlobal(static_cast<float*>(p.y) + i, Mul(LoadElement(p.x, p.x_type, from), p.scale));
}

LATTE_DEVICE void Cast(const CastParams& p) {
  int64_t rest = LaneOfGrid(), x = 0, y = 0;
  LATTE_UNROLL
  for (int axis = CastParams::kRank - 1; axis >= 0; --axis) {
    x += rest % p.shape[axis] * p.x_stride[axis];
    y += rest % p.shape[axis] * p.y_stride[axis];
    rest /= p.shape[axis];
  }
  if (rest == 0) StoreElement(p.y, p.y_type, y, LoadGlobal(p.x + x));
}

LATTE_DEVICE void FiniteRows(const FiniteRowsParams& p) {
  const int m = RowOfWarp();
  if (m >= p.m) return;
  int32_t bad = 0;
  for (int i = Lane(); i < p.d; i += kWarp) {
    const uint32_t bits = FloatBits(LoadGlobal(p.x + m * p.stride + i));
    if ((bits & 0x7f800000u) == 0x7f800000u) bad = 1;
  }
  bad = WarpSum(bad);
  if (Lane() == 0) StoreGlobal(p.finite + m, bad == 0 ? 1 : 0);
}

LATTE_DEVICE void PackDrafts(const PackDraftsParams& p) {
  const int m = RowOfWarp();
  if (m >= p.m) return;
  const int slot = LoadGlobal(p.slots + m);
  if (slot < 0) return;
  for (int i = Lane(); i < p.d; i += kWarp)
    StoreGlobal(p.y + slot * p.y_stride + i, LoadGlobal(p.x + m * p.x_stride + i));
}

}  // namespace latte::cuda
