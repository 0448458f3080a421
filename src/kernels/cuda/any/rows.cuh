// Pointwise `any` kernels: rows that are moved, rounded, rotated, scaled, added or checked.
#pragma once

#include "src/kernels/cuda/any/gemm.cuh"
#include "src/kernels/cuda/any/norm.cuh"
#include "src/kernels/cuda/common/log.cuh"
#include "src/kernels/cuda/common/sin_cos.cuh"
#include "src/kernels/cuda/common/weights.cuh"
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

LATTE_DEVICE void AddRows(const AddParams& p) {
  const int64_t i = LaneOfGrid();
  if (i < p.count) StoreGlobal(p.y + i, Add(LoadGlobal(p.y + i), LoadGlobal(p.x + i)));
}

LATTE_DEVICE void Gather(const GatherParams& p) {
  const int64_t i = LaneOfGrid();
  if (i >= int64_t{p.m} * p.d) return;
  const void* const row =
      static_cast<const uint8_t*>(p.x) + LoadGlobal(p.ids + i / p.d) * p.x_row_bytes;
  const int64_t d = i % p.d;
  if (p.x_type == Element::kI8)
    return StoreGlobal(static_cast<int8_t*>(p.y) + i,
                       LoadGlobal(static_cast<const int8_t*>(row) + d));
  if (p.x_type == p.y_type && p.x_type != Element::kF32)
    return StoreGlobal(static_cast<uint16_t*>(p.y) + i,
                       LoadGlobal(static_cast<const uint16_t*>(row) + d));
  StoreGlobal(static_cast<float*>(p.y) + i, Mul(LoadNumber(row, p.x_type, d), p.scale));
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

// A warp a group of columns of a row. The bits of |x| are ordered as the numbers are, NaN above
// infinity.
LATTE_DEVICE void QuantizeRows(const QuantizeRowsParams& p) {
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the last bits
  const int groups = (p.k + p.group - 1) / p.group;
  const int m = RowOfWarp() / groups, g = RowOfWarp() % groups;
  if (m >= p.m) return;
  const float* const x = p.x + m * p.x_stride;
  const int begin = g * p.group;
  const int end = p.k - begin < p.group ? p.k : begin + p.group;
  int32_t largest = 0;
  for (int i = begin + Lane(); i < end; i += kWarp) {
    const auto bits = static_cast<int32_t>(FloatBits(LoadGlobal(x + i)) & 0x7fffffffu);
    largest = bits > largest ? bits : largest;
  }
  largest = WarpMax(largest);
  const float most = BitsFloat(static_cast<uint32_t>(largest));
  const bool finite = largest < 0x7f800000;
  const bool zero = !finite || most < 0x1p-119f;  // below it, 127/most is infinite
  const float inverse = zero ? 0.0f : Div(127.0f, most);
  for (int i = begin + Lane(); i < end; i += kWarp) {
    const uint32_t code = zero ? 0 : FloatBits(Add(Mul(LoadGlobal(x + i), inverse), kRound));
    StoreGlobal(p.y + m * p.y_stride + i, static_cast<int8_t>(code));
  }
  const float scale = zero ? 0.0f : Div(most, 127.0f);
  if (Lane() == 0)
    StoreGlobal(p.scale + m * p.scale_stride + g, finite ? scale : BitsFloat(0x7fc00000u));
}

LATTE_DEVICE void QueryTemperature(const QueryTemperatureParams& p) {
  const int t = RowOfWarp();
  if (t >= p.t) return;
  const int64_t periods = LoadGlobal(p.positions + t) / p.period;
  if (periods == 0) return;
  const double logarithm = LogOf(1.0 + static_cast<double>(periods));
  const float factor = static_cast<float>(fma(p.beta, logarithm, 1.0));
  float* const x = p.x + t * p.stride;
  for (int i = Lane(); i < p.width; i += kWarp) StoreGlobal(x + i, Mul(LoadGlobal(x + i), factor));
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
