// Pointwise ops on f32 rows (norms, gates, RoPE, rounding, moves): one row or one range of elements
// per task, bound by memory; AVX2 and AVX-512.
//
// Order      rms_norm: the sum of squares has four vectors of partial sums, added as (0+1)+(2+3)
//            and reduced by the tree of Sum; it depends on D alone. SiluMul: elements are
//            independent. quantize_rows, rope, combine, mix, round and widen give the bytes of the
//            reference.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

template <class V>
float SumOfSquares(const float* x, int64_t count) {
  typename V::Vec acc[4];
  for (auto& sum : acc) sum = V::Zero();
  int64_t i = 0;
  for (; i + 4 * V::kLanes <= count; i += 4 * V::kLanes)
    for (int64_t j = 0; j < 4; ++j) {
      const typename V::Vec xj = V::Load(x + i + j * V::kLanes);
      acc[j] = V::Fma(xj, xj, acc[j]);
    }
  for (int64_t j = 0; i < count; i += V::kLanes, ++j) {
    const typename V::Vec xj = LoadNext<V>(x + i, count - i);
    acc[j] = V::Fma(xj, xj, acc[j]);
  }
  return V::Sum(V::Add(V::Add(acc[0], acc[1]), V::Add(acc[2], acc[3])));
}

template <class V>
void RmsNorm(const RmsNormTask& t) {
  const float mean = SumOfSquares<V>(t.x, t.d) / static_cast<float>(t.d);
  const typename V::Vec inverse = V::Set1(1.0f / __builtin_sqrtf(mean + t.eps));
  WithType(t.w, t.w_type, [&](const auto* w) {
    for (int64_t i = 0; i < t.d; i += V::kLanes) {
      const int64_t rest = t.d - i;
      const typename V::Vec x = V::Mul(LoadNext<V>(t.x + i, rest), inverse);
      StoreNext<V>(t.y + i, V::Mul(x, LoadNext<V>(w + i, rest)), rest);
    }
  });
}

template <class V>
void SiluMul(const SiluMulTask& t) {
  const typename V::Vec one = V::Set1(1.0f);
  for (int64_t i = 0; i < t.count; i += V::kLanes) {
    const int64_t rest = t.count - i;
    const typename V::Vec gate = LoadNext<V>(t.gate + i, rest);
    const typename V::Vec silu = V::Div(gate, V::Add(one, V::Exp(V::Sub(V::Zero(), gate))));
    StoreNext<V>(t.y + i, V::Mul(silu, LoadNext<V>(t.up + i, rest)), rest);
  }
}

template <class V>
void Rope(const RopeTask& t) {
  if (t.interleaved) {
    for (int64_t j = 0; j < t.count; j += V::kLanes / 2) {
      const int64_t angles = Min(V::kLanes / 2, t.count - j);
      const typename V::Vec x = LoadNext<V>(t.x + 2 * j, 2 * angles);
      const typename V::Vec cos = V::Twice(t.cos + j, angles);
      const typename V::Vec sin = V::NegateEven(V::Twice(t.sin + j, angles));
      StoreNext<V>(t.x + 2 * j, V::Add(V::Mul(x, cos), V::Mul(V::SwapNeighbours(x), sin)),
                   2 * angles);
    }
    return;
  }
  for (int64_t j = 0; j < t.count; j += V::kLanes) {
    const int64_t rest = t.count - j;
    const typename V::Vec a = LoadNext<V>(t.x + j, rest);
    const typename V::Vec b = LoadNext<V>(t.x + t.count + j, rest);
    const typename V::Vec cos = LoadNext<V>(t.cos + j, rest);
    const typename V::Vec sin = LoadNext<V>(t.sin + j, rest);
    StoreNext<V>(t.x + j, V::Sub(V::Mul(a, cos), V::Mul(b, sin)), rest);
    StoreNext<V>(t.x + t.count + j, V::Add(V::Mul(a, sin), V::Mul(b, cos)), rest);
  }
}

template <class V>
void Combine(const CombineTask& t) {
  for (int64_t i = 0; i < t.d; i += V::kLanes) {
    const int64_t rest = t.d - i;
    typename V::Vec sum = V::Zero();
    for (int64_t k = 0; k < t.chosen; ++k) {
      const typename V::Vec x = LoadNext<V>(t.x + t.rows[k] * t.x_stride + i, rest);
      sum = V::Add(sum, V::Mul(V::Set1(t.weights[k]), x));
    }
    StoreNext<V>(t.y + i, t.add ? V::Add(LoadNext<V>(t.y + i, rest), sum) : sum, rest);
  }
}

template <class V>
void Mix(const MixTask& t) {
  for (int64_t i = 0; i < t.count; i += V::kLanes) {
    const int64_t rest = t.count - i;
    const typename V::Vec o = LoadNext<V>(t.o + i, rest);
    StoreNext<V>(t.o + i, V::MixWide(t.a, o, t.b, LoadNext<V>(t.o_b + i, rest)), rest);
  }
}

template <class V>
void Add(const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const int64_t rest = count - i;
    StoreNext<V>(y + i, V::Add(LoadNext<V>(y + i, rest), LoadNext<V>(x + i, rest)), rest);
  }
}

template <class V>
void QuantizeGroup(const float* x, int64_t count, int8_t* y, float* scale) {
  typename V::Vec largest = V::Zero();
  for (int64_t i = 0; i < count; i += V::kLanes)
    largest = V::MaxMagnitude(largest, LoadNext<V>(x + i, count - i));
  const float most = V::LargestMagnitude(largest);
  const bool finite = most <= 0x1.fffffep127f;
  // Below this, 127/max overflows; so small a group becomes zeros.
  const bool zero = !finite || most < 0x1p-119f;
  *scale = !finite ? __builtin_nanf("") : zero ? 0.0f : most / 127.0f;
  // Adding 1.5·2^23 rounds a number below 2^22 to an integer, in the low bits of the sum.
  const typename V::Vec round = V::Set1(0x1.8p23f);
  const typename V::Vec inverse = V::Set1(zero ? 0.0f : 127.0f / most);
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const typename V::Vec code = V::Mul(LoadNext<V>(x + i, count - i), inverse);
    V::StoreLowBytes(y + i, V::Add(code, round), count - i);
  }
}

template <class V>
void Round(const float* x, int64_t count, Element type, void* y) {
  const auto round = [&](auto* to) {
    for (int64_t i = 0; i < count; i += V::kLanes)
      V::StoreRounded(to + i, LoadNext<V>(x + i, count - i), Min(V::kLanes, count - i));
  };
  if (type == Element::kBF16) return round(static_cast<BF16*>(y));
  round(static_cast<F16*>(y));
}

template <class V>
void Widen(const void* x, Element type, int64_t count, float* y) {
  WithType(x, type, [&](const auto* from) { WidenRow<V>(from, count, y); });
}

template <class V>
void QuantizeRow(const QuantizeTask& t) {
  for (int64_t k = 0; k < t.k; k += t.group)
    QuantizeGroup<V>(t.x + k, Min(t.group, t.k - k), t.y + k, t.scale + k / t.group);
}

}  // namespace
}  // namespace latte::cpu
