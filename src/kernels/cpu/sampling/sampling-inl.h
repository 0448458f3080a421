// f32 logits → weights of 64-bit whole numbers · vectors of 4, 8 or 16 floats, by the compiler's
// vector types · any number of whole blocks of 64 logits · baseline, AVX2, AVX-512
//
// Order: plain IEEE operations, one after the other for each logit, without contraction; sums are
// of whole numbers. So all widths and compilers give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Numbers of a vector: the widest of the instruction set that this is compiled for.
#if defined(__AVX512F__)
constexpr size_t kLogitLanes = 16;
#elif defined(__AVX2__)
constexpr size_t kLogitLanes = 8;
#else
constexpr size_t kLogitLanes = 4;
#endif

struct SamplingKernels {
  static constexpr size_t kLanes = kLogitLanes;

  using F = float __attribute__((vector_size(4 * kLanes)));
  using I = int32_t __attribute__((vector_size(4 * kLanes)));
  using U = uint32_t __attribute__((vector_size(4 * kLanes)));
  using U64 = uint64_t __attribute__((vector_size(8 * kLanes)));

  static F Load(const float* z) {
    F x;
    std::memcpy(&x, z, sizeof(x));
    return x;
  }

  template <class V>
  static void Store(const V& v, void* to) {
    std::memcpy(to, &v, sizeof(v));
  }

  static I Bits(F x) { return __builtin_bit_cast(I, x); }
  static F OfBits(I x) { return __builtin_bit_cast(F, x); }

  template <class V>
  static bool Any(const V& v) {
    uint64_t words[sizeof(v) / 8];
    Store(v, words);
    uint64_t any = 0;
    for (const uint64_t word : words) any |= word;
    return any != 0;
  }

  static float BlockMax(const float* z, I* nan) {
    F max = Load(z);
    for (size_t i = 0; i < kLogitBlock; i += kLanes) {
      const F x = Load(z + i);
      max = x > max ? x : max;
      *nan |= x != x;
    }
    float lanes[kLanes];
    Store(max, lanes);
    for (size_t half = kLanes / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i)
        lanes[i] = lanes[i + half] > lanes[i] ? lanes[i + half] : lanes[i];
    return lanes[0];
  }

  static bool LogitMax(const float* z, size_t blocks, float* block_max) {
    I nan = {};
    for (size_t b = 0; b < blocks; ++b) block_max[b] = BlockMax(z + b * kLogitBlock, &nan);
    return Any(nan);
  }

  // 2^20 · 2^x for −41 <= x <= 0: 2^n by the exponent's bits times 2^f, |f| <= 1/2, by a polynomial
  // that is 1 at 0 and else off by at most 4.5e-7 of it.
  static F ScaledExp2(F x) {
    // Adding it rounds to an integer and leaves that in the low bits, with the exponent's bias.
    constexpr float kRound = 0x1.8p23f + 127 + 20;
    const F shifted = x + kRound;
    const F f = x - (shifted - kRound);
    F y = 0.00111255096f * f + 0.00966628268f;
    y = y * f + 0.0555740036f;
    y = y * f + 0.240223512f;
    y = y * f + 0.693142831f;
    y = y * f + 1.0f;
    return y * OfBits(Bits(shifted) << 23);
  }

  // Weights as 2^20 · high + low, both up to 2^20.
  struct SplitWeights {
    U high, low;
  };

  static SplitWeights Weights(F logits, const LogitWeights& scale) {
    const F least = F{} - 41.0f;  // weights below 2^−40 are rounded to nothing
    const F x = (logits - scale.max) * scale.scale;
    F p = ScaledExp2(x > least ? x : least);
    p = OfBits(Bits(p) & (x >= F{} + scale.cut));
    const I high = __builtin_convertvector(p, I);
    const F rest = (p - __builtin_convertvector(high, F)) * 0x1p20f;
    return {__builtin_bit_cast(U, high), __builtin_bit_cast(U, __builtin_convertvector(rest, I))};
  }

  // A block of zero weights.
  static bool Weightless(float block_max, const LogitWeights& scale) {
    return !((block_max - scale.max) * scale.scale >= scale.cut);
  }

  static uint64_t Total(U v) {
    uint32_t lanes[kLanes];
    Store(v, lanes);
    uint64_t sum = 0;
    for (const uint32_t lane : lanes) sum += lane;
    return sum;
  }

  static uint64_t WeightSum(const float* z, const float* block_max, size_t blocks,
                            const LogitWeights& scale) {
    constexpr size_t kRun = 64;  // blocks; at most 16 · 64 · 2^20 per lane
    uint64_t sum = 0;
    for (size_t begin = 0; begin < blocks; begin += kRun) {
      U high = {};
      U low = {};
      for (size_t b = begin; b < blocks && b < begin + kRun; ++b) {
        if (Weightless(block_max[b], scale)) continue;
        for (size_t i = 0; i < kLogitBlock; i += kLanes) {
          const SplitWeights w = Weights(Load(z + b * kLogitBlock + i), scale);
          high += w.high;
          low += w.low;
        }
      }
      sum += (Total(high) << 20) + Total(low);
    }
    return sum;
  }

  static void BlockWeights(const float* z, const LogitWeights& scale, uint64_t* out) {
    for (size_t i = 0; i < kLogitBlock; i += kLanes) {
      const auto [high, low] = Weights(Load(z + i), scale);
      Store((__builtin_convertvector(high, U64) << 20) + __builtin_convertvector(low, U64),
            out + i);
    }
  }

  static void AllWeights(const float* z, size_t blocks, const LogitWeights& scale, uint64_t* out) {
    for (size_t i = 0; i < blocks * kLogitBlock; i += kLogitBlock)
      BlockWeights(z + i, scale, out + i);
  }

  static I BucketOf(F logits, const LogitBuckets& grid) {
    const F last = F{} + static_cast<float>(kLogitBuckets - 1);
    const F steps = (grid.max - logits) * grid.per_logit;
    return __builtin_convertvector(steps < last ? steps : last, I);
  }

  static void BlockBuckets(const float* z, const LogitBuckets& grid, int32_t* at) {
    for (size_t i = 0; i < kLogitBlock; i += kLanes) Store(BucketOf(Load(z + i), grid), at + i);
  }

  static void WeightHistogram(const float* z, const float* block_max, size_t blocks,
                              const LogitWeights& scale, const LogitBuckets& grid,
                              uint64_t* buckets) {
    // Some blocks at a time, and unrolled, for the processor to overlap what they wait for.
    constexpr size_t kRun = 8;
    constexpr size_t kUnroll = 8;
    int32_t at[kRun * kLogitBlock];
    uint64_t weights[kRun * kLogitBlock];
    for (size_t begin = 0; begin < blocks; begin += kRun) {
      size_t count = 0;
      for (size_t b = begin; b < blocks && b < begin + kRun; ++b) {
        if (Weightless(block_max[b], scale)) continue;
        BlockWeights(z + b * kLogitBlock, scale, weights + count);
        BlockBuckets(z + b * kLogitBlock, grid, at + count);
        count += kLogitBlock;
      }
      for (size_t i = 0; i < count; i += kUnroll)
        for (size_t j = i; j < i + kUnroll; ++j) buckets[at[j]] += weights[j];
    }
  }

  static void FindBucket(const float* z, size_t blocks, const LogitBuckets& grid, int32_t bucket,
                         uint8_t* found) {
    for (size_t b = 0; b < blocks; ++b) {
      I hits = {};
      for (size_t i = 0; i < kLogitBlock; i += kLanes)
        hits |= BucketOf(Load(z + b * kLogitBlock + i), grid) == bucket;
      found[b] = Any(hits) ? 1 : 0;
    }
  }
};

}  // namespace
}  // namespace latte::cpu
