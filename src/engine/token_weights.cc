#include "src/engine/token_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

namespace latte {
namespace {

// Vectors of the compiler, 16 bytes: what every x86-64 processor has.
using F4 = float __attribute__((vector_size(16)));
using I4 = int32_t __attribute__((vector_size(16)));
using U2 = uint64_t __attribute__((vector_size(16)));

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
using Block = std::array<float, kLogitBlock>;

F4 Load(const float* z) {
  F4 x;
  std::memcpy(&x, z, sizeof(x));
  return x;
}

// f(first index, pointer to kLogitBlock logits, how many of them are the row's); those past its end
// are −inf.
template <class F>
void ForEachBlock(std::span<const float> logits, const F& f) {
  size_t first = 0;
  for (; first + kLogitBlock <= logits.size(); first += kLogitBlock)
    f(first, &logits[first], kLogitBlock);
  if (first == logits.size()) return;
  Block rest;
  rest.fill(kMinusInf);
  std::copy(logits.begin() + static_cast<int64_t>(first), logits.end(), rest.begin());
  f(first, rest.data(), logits.size() - first);
}

float BlockMax(const float* z, I4* nan) {
  F4 even = Load(z);
  F4 odd = Load(z + 4);
  for (size_t i = 0; i < kLogitBlock; i += 8) {
    const F4 x = Load(z + i);
    const F4 y = Load(z + i + 4);
    even = x > even ? x : even;
    odd = y > odd ? y : odd;
    *nan |= (x != x) | (y != y);
  }
  even = odd > even ? odd : even;
  return std::max(std::max(even[0], even[1]), std::max(even[2], even[3]));
}

// 2^20 · 2^x for −41 <= x <= 0: 2^n by the exponent's bits times 2^f, |f| <= 1/2, by a polynomial
// that is 1 at 0 and else off by at most 4.5e-7 of it.
F4 ScaledExp2(F4 x) {
  // Adding it rounds to an integer and leaves that in the low bits, with the exponent's bias.
  constexpr float kRound = 0x1.8p23f + 127 + 20;
  const F4 shifted = x + kRound;
  const F4 f = x - (shifted - kRound);
  F4 y = 0.00111255096f * f + 0.00966628268f;
  y = y * f + 0.0555740036f;
  y = y * f + 0.240223512f;
  y = y * f + 0.693142831f;
  y = y * f + 1.0f;
  return y * std::bit_cast<F4>(std::bit_cast<I4>(shifted) << 23);
}

// Weights as 2^20 · high + low.
struct SplitWeights {
  I4 high, low;
};

// kCut: whether the scale's cut counts, which costs time. Without it the weights below 2^−40 are
// rounded to nothing.
template <bool kCut>
SplitWeights Weights(F4 logits, const WeightScale& scale) {
  const F4 least = F4{} - 41.0f;
  const F4 x = (logits - scale.max) * scale.scale;
  F4 p = ScaledExp2(x > least ? x : least);
  if constexpr (kCut) {
    const I4 kept = x >= scale.cut;
    p = std::bit_cast<F4>(std::bit_cast<I4>(p) & kept);
  }
  const I4 high = __builtin_convertvector(p, I4);
  const F4 rest = (p - __builtin_convertvector(high, F4)) * 0x1p20f;
  return {high, __builtin_convertvector(rest, I4)};
}

int64_t Total(I4 v) { return int64_t{v[0]} + v[1] + v[2] + v[3]; }

template <bool kCut>
uint64_t SumBlock(const float* z, const WeightScale& scale) {
  I4 high = {};  // at most 16 · 2^20 per lane
  I4 low = {};
  for (size_t i = 0; i < kLogitBlock; i += 4) {
    const SplitWeights w = Weights<kCut>(Load(z + i), scale);
    high += w.high;
    low += w.low;
  }
  return (static_cast<uint64_t>(Total(high)) << 20) + static_cast<uint64_t>(Total(low));
}

template <bool kCut>
void ComputeBlock(const float* z, const WeightScale& scale, uint64_t* out) {
  constexpr I4 kZero = {};
  for (size_t i = 0; i < kLogitBlock; i += 4) {
    const auto [high, low] = Weights<kCut>(Load(z + i), scale);
    const auto first = (std::bit_cast<U2>(__builtin_shufflevector(high, kZero, 0, 4, 1, 5)) << 20) +
                       std::bit_cast<U2>(__builtin_shufflevector(low, kZero, 0, 4, 1, 5));
    const auto second =
        (std::bit_cast<U2>(__builtin_shufflevector(high, kZero, 2, 6, 3, 7)) << 20) +
        std::bit_cast<U2>(__builtin_shufflevector(low, kZero, 2, 6, 3, 7));
    std::memcpy(out + i, &first, sizeof(first));
    std::memcpy(out + i + 2, &second, sizeof(second));
  }
}

bool HasCut(const WeightScale& scale) { return scale.cut > WeightScale::kNoCut; }

// A block of zero weights.
bool Weightless(float block_max, const WeightScale& scale) {
  return !((block_max - scale.max) * scale.scale >= scale.cut);
}

}  // namespace

LogitScan ScanLogits(std::span<const float> logits) {
  LogitScan out;
  out.max = kMinusInf;
  out.block_max.resize((logits.size() + kLogitBlock - 1) / kLogitBlock);
  I4 nan = {};
  ForEachBlock(logits, [&](size_t first, const float* z, size_t) {
    const float max = BlockMax(z, &nan);
    out.block_max[first / kLogitBlock] = max;
    out.max = std::max(out.max, max);
  });
  out.nan = (nan[0] | nan[1] | nan[2] | nan[3]) != 0;
  return out;
}

WeightScale WeightScale::Of(float max, double temperature, double min_p) {
  const double cut = min_p > 0 ? std::log2(min_p) : kNoCut;
  return {max, static_cast<float>(std::numbers::log2e / temperature),
          std::max(static_cast<float>(cut), kNoCut)};
}

uint64_t SumWeights(std::span<const float> logits, const LogitScan& scan,
                    const WeightScale& scale) {
  uint64_t sum = 0;
  ForEachBlock(logits, [&](size_t first, const float* z, size_t) {
    if (Weightless(scan.block_max[first / kLogitBlock], scale)) return;
    sum += HasCut(scale) ? SumBlock<true>(z, scale) : SumBlock<false>(z, scale);
  });
  return sum;
}

void ComputeWeights(std::span<const float> logits, const WeightScale& scale,
                    std::span<uint64_t> out) {
  const auto compute = HasCut(scale) ? ComputeBlock<true> : ComputeBlock<false>;
  ForEachBlock(logits, [&](size_t first, const float* z, size_t count) {
    if (count == kLogitBlock) return compute(z, scale, &out[first]);
    std::array<uint64_t, kLogitBlock> block;
    compute(z, scale, block.data());
    std::copy_n(block.begin(), count, out.begin() + static_cast<int64_t>(first));
  });
}

}  // namespace latte
