// The rate at which the processor multiplies and adds when nothing keeps it waiting: what kernels
// are compared with.
//
// As many independent chains as a register tile has sums; each step depends on the one before, so
// none can be left out.
#pragma once

#include <cstdint>

namespace latte::cpu {
namespace {

template <class V, class Step>
void RunChains(int64_t rounds, float* sink, const Step& step) {
  typename V::Vec sums[V::kTileRows][4];  // short loops, which compilers unroll into registers
  for (auto& row : sums)
    for (typename V::Vec& sum : row) sum = V::Set1(2.0f);
  for (int64_t n = 0; n < rounds; ++n)
    for (auto& row : sums)
      for (typename V::Vec& sum : row) sum = step(sum);
  typename V::Vec total = V::Zero();
  for (const auto& row : sums)
    for (const typename V::Vec& sum : row) total = V::Add(total, sum);
  *sink = V::Sum(total);
}

// Fused multiply-adds of f32.
template <class V>
int64_t FmaPeak(int64_t rounds, float* sink) {
  const typename V::Vec half = V::Set1(0.5f);  // the sums tend to 1 and stay normal
  RunChains<V>(rounds, sink, [&](typename V::Vec sum) { return V::Fma(sum, half, half); });
  return rounds * V::kTileRows * 4 * V::kLanes * 2;
}

// Dot products of pairs of bf16, added to f32.
template <class V>
int64_t PairPeak(int64_t rounds, float* sink) {
  const float ones[2 * V::kLanes] = {1.0f, 1.0f};
  const typename V::Pairs x = V::RoundPairs(V::Load(ones), V::Load(ones + V::kLanes));
  RunChains<V>(rounds, sink, [&](typename V::Vec sum) { return V::DotPairs(sum, x, x); });
  return rounds * V::kTileRows * 4 * V::kLanes * 4;
}

}  // namespace
}  // namespace latte::cpu
