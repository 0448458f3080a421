// Weights in blocks of the types that most GGUF files have, as operands of gemm_f32: a block
// decodes to f32 in registers, to the values that tensor/weight_blocks.h defines. So a product has
// the bits of the product with the decoded matrix.
//
// Each type is a struct of the size of its block, so that pointers step from block to block, with
//   Scales   the scales of all groups of a block, then their offsets:  value = scale · code +
//            offset
//   Codes    the codes of kLanes values of a group, as integers
// The codes of Q6_K are 32 too large here, and its offset is −32 · scale: every value is exact, so
// it is the same, but for the sign of zero, which no sum shows.
#pragma once

#include <cstdint>
#include <utility>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"

namespace latte::cpu {
namespace {

struct BlockQ8_0 {  // d, 32 signed bytes
  static constexpr int kGroups = 1, kGroup = 32;
  static constexpr bool kHasOffsets = false;
  uint8_t bytes[34];

  template <class V>
  void Scales(float (&to)[2]) const {
    to[0] = V::FromF16(bytes);
  }
  template <class V, int kG>
  typename V::Ints Codes(int64_t i) const {
    return V::LoadI8(bytes + 2 + i);
  }
};

// d and dmin, then 6-bit scales and minima of 8 groups: Q4_K and Q5_K. Groups 0 to 3 have their
// scales in the low bits of the first word and their minima in the low bits of the second; their
// high bits belong to groups 4 to 7, whose low four bits are in the third.
template <class V>
inline void ScalesOf8(const uint8_t* block, float (&to)[16]) {
  uint32_t word[3];
  __builtin_memcpy(word, block + 4, sizeof(word));
  const uint64_t high_codes = (word[2] & 0x0f0f0f0fu) | (word[0] >> 6 & 0x03030303u) << 4;
  const uint64_t high_minima = (word[2] >> 4 & 0x0f0f0f0fu) | (word[1] >> 6 & 0x03030303u) << 4;
  V::StoreScaled(to, V::FromF16(block), (word[0] & 0x3f3f3f3fu) | high_codes << 32,
                 -V::FromF16(block + 2), (word[1] & 0x3f3f3f3fu) | high_minima << 32);
}

// The low or the high four bits of bytes.
template <class V, bool kHigh>
inline typename V::Ints Nibbles(const uint8_t* bytes) {
  const typename V::Ints wide = V::LoadU8(bytes);
  if constexpr (kHigh)
    return V::template ShiftRight<4>(wide);
  else
    return V::And(wide, 15);
}

// Bits kFrom of bytes, moved to bits kTo; kMask is at kTo.
template <class V, int kFrom, int kTo, int kMask>
inline typename V::Ints BitsOf(const uint8_t* bytes) {
  typename V::Ints wide = V::LoadU8(bytes);
  if constexpr (kFrom < kTo) wide = V::template ShiftLeft<kTo - kFrom>(wide);
  if constexpr (kFrom > kTo) wide = V::template ShiftRight<kFrom - kTo>(wide);
  return V::And(wide, kMask);
}

struct BlockQ4_K {
  static constexpr int kGroups = 8, kGroup = 32;
  static constexpr bool kHasOffsets = true;
  uint8_t bytes[144];

  template <class V>
  void Scales(float (&to)[16]) const {
    ScalesOf8<V>(bytes, to);
  }
  template <class V, int kG>
  typename V::Ints Codes(int64_t i) const {
    return Nibbles<V, kG % 2 == 1>(bytes + 16 + kG / 2 * 32 + i);
  }
};

struct BlockQ5_K {
  static constexpr int kGroups = 8, kGroup = 32;
  static constexpr bool kHasOffsets = true;
  uint8_t bytes[176];

  template <class V>
  void Scales(float (&to)[16]) const {
    ScalesOf8<V>(bytes, to);
  }
  template <class V, int kG>
  typename V::Ints Codes(int64_t i) const {
    return V::Or(Nibbles<V, kG % 2 == 1>(bytes + 48 + kG / 2 * 32 + i),
                 BitsOf<V, kG, 4, 16>(bytes + 16 + i));
  }
};

struct BlockQ6_K {
  static constexpr int kGroups = 16, kGroup = 16;
  static constexpr bool kHasOffsets = true;
  uint8_t bytes[210];

  template <class V>
  void Scales(float (&to)[32]) const {
    const typename V::Vec d = V::Set1(V::FromF16(bytes + 208));
    for (int64_t g = 0; g < 16; g += V::kLanes) {
      const typename V::Vec scale = V::Mul(V::ToFloat(V::LoadI8(bytes + 192 + g)), d);
      V::Store(to + g, scale);
      V::Store(to + 16 + g, V::Mul(scale, V::Set1(-32.0f)));
    }
  }
  template <class V, int kG>
  typename V::Ints Codes(int64_t i) const {
    constexpr int kFirst = kG * kGroup;  // value of the block
    return V::Or(
        Nibbles<V, kFirst / 64 % 2 == 1>(bytes + kFirst / 128 * 64 + kFirst % 64 + i),
        BitsOf<V, kFirst / 32 % 4 * 2, 4, 48>(bytes + 128 + kFirst / 128 * 32 + kFirst % 32 + i));
  }
};

template <>
inline constexpr int64_t kValuesPer<BlockQ8_0> = 32;
template <>
inline constexpr int64_t kValuesPer<BlockQ4_K> = 256;
template <>
inline constexpr int64_t kValuesPer<BlockQ5_K> = 256;
template <>
inline constexpr int64_t kValuesPer<BlockQ6_K> = 256;

template <class T>
constexpr bool kIsBlock = kValuesPer<T> >= 32;

// Values from one prefetch to the next.
template <class Math, class T>
constexpr int64_t PrefetchStep() {
  if constexpr (kIsBlock<T>)
    return T::kGroup;
  else
    return Math::kStep;
}

// Calls f(Int<0>), f(Int<1>), … f(Int<kCount − 1>).
template <int kCount, class F>
inline void ForEachInt(const F& f) {
  [&f]<int... kI>(std::integer_sequence<int, kI...>) { (f(Int<kI>{}), ...); }
  (std::make_integer_sequence<int, kCount>{});
}

// kLanes values, from value i of group kG on.
template <class V, int kG, class T>
inline typename V::Vec ValuesOf(const T& block, int64_t i, typename V::Vec scale,
                                typename V::Vec offset) {
  const typename V::Vec codes = V::ToFloat(block.template Codes<V, kG>(i));
  if constexpr (T::kHasOffsets)
    return V::Fma(codes, scale, offset);
  else
    return V::Mul(codes, scale);
}

// sums[i][j] += x[i, 0:k]·(the blocks at w[j]); calls prefetch(at) at every group. X is
// ARows<float>.
template <class V, int64_t kM, int64_t kN, class T, class X, class Prefetch>
inline void AddBlockDots(const X& x, const T* const (&w)[kN], int64_t k, const Prefetch& prefetch,
                         typename V::Vec (&sums)[kM][kN]) {
  for (int64_t b = 0; b < k / kValuesPer<T>; ++b) {
    float scale[kN][2 * T::kGroups];
    for (int64_t j = 0; j < kN; ++j) w[j][b].template Scales<V>(scale[j]);
    ForEachInt<T::kGroups>([&](auto group) {
      constexpr int kG = decltype(group)::value;
      typename V::Vec s[kN], o[kN];
      for (int64_t j = 0; j < kN; ++j) {
        s[j] = V::Set1(scale[j][kG]);
        o[j] = V::Set1(T::kHasOffsets ? scale[j][T::kGroups + kG] : 0.0f);
      }
      prefetch(b * kValuesPer<T> + kG * T::kGroup);
      for (int64_t i = 0; i < T::kGroup; i += V::kLanes) {
        const int64_t at = b * kValuesPer<T> + kG * T::kGroup + i;
        typename V::Vec wide[kN];
        for (int64_t j = 0; j < kN; ++j) wide[j] = ValuesOf<V, kG>(w[j][b], i, s[j], o[j]);
        for (int64_t r = 0; r < kM; ++r) {
          const typename V::Vec xr = V::Load(x.data + r * x.stride + at);
          for (int64_t j = 0; j < kN; ++j) sums[r][j] = V::Fma(xr, wide[j], sums[r][j]);
        }
      }
    });
  }
}

// to[0:k] = the values of blocks.
template <class V, class T>
inline void WidenBlocks(const T* w, int64_t k, float* to) {
  for (int64_t b = 0; b < k / kValuesPer<T>; ++b) {
    float scale[2 * T::kGroups];
    w[b].template Scales<V>(scale);
    ForEachInt<T::kGroups>([&](auto group) {
      constexpr int kG = decltype(group)::value;
      const typename V::Vec s = V::Set1(scale[kG]);
      const typename V::Vec o = V::Set1(T::kHasOffsets ? scale[T::kGroups + kG] : 0.0f);
      for (int64_t i = 0; i < T::kGroup; i += V::kLanes)
        V::Store(to + b * kValuesPer<T> + kG * T::kGroup + i, ValuesOf<V, kG>(w[b], i, s, o));
    });
  }
}

inline bool IsBlockOperand(Element type) {
  for (const Element operand : kBlockOperands)
    if (type == operand) return true;
  return false;
}

// Calls f with a typed pointer to blocks. Requires: IsBlockOperand(type).
template <class F>
void WithBlockType(const void* data, Element type, const F& f) {
  if (type == Element::kQ8_0) return f(static_cast<const BlockQ8_0*>(data));
  if (type == Element::kQ4_K) return f(static_cast<const BlockQ4_K*>(data));
  if (type == Element::kQ5_K) return f(static_cast<const BlockQ5_K*>(data));
  f(static_cast<const BlockQ6_K*>(data));
}

}  // namespace
}  // namespace latte::cpu
