// Arithmetic peak: independent chains of multiply-adds in registers, as many as a register tile has
// accumulators. Every step depends on the previous step, so the compiler can remove none.
#pragma once

#include <cstdint>

namespace latte::cpu {
namespace {

// Runs `rounds` steps of kTileRows·4 chains that begin with `start`, and returns their sum.
template <class V, class Sum, class Step, class Add>
Sum RunChains(int64_t rounds, Sum start, const Step& step, const Add& add) {
  Sum sums[V::kTileRows][4];  // short loops, which compilers unroll into registers
  for (auto& row : sums)
    for (Sum& sum : row) sum = start;
  for (int64_t n = 0; n < rounds; ++n)
    for (auto& row : sums)
      for (Sum& sum : row) sum = step(sum);
  Sum total = start;
  for (const auto& row : sums)
    for (const Sum& sum : row) total = add(total, sum);
  return total;
}

// Fused multiply-adds of f32.
template <class V>
int64_t FmaPeak(int64_t rounds, float* sink) {
  using Vec = typename V::Vec;
  const Vec half = V::Set1(0.5f);  // the sums tend to 1 and stay normal
  *sink = V::Sum(RunChains<V>(
      rounds, half, [&](Vec sum) { return V::Fma(sum, half, half); }, V::Add));
  return rounds * V::kTileRows * 4 * V::kLanes * 2;
}

// Dot products of bf16 pairs, added to f32.
template <class V>
int64_t Bf16Peak(int64_t rounds, float* sink) {
  using Vec = typename V::Vec;
  const float ones[2 * V::kLanes] = {1.0f, 1.0f};
  const typename V::Pairs x = V::RoundPairs(V::Load(ones), V::Load(ones + V::kLanes));
  *sink = V::Sum(RunChains<V>(
      rounds, V::Zero(), [&](Vec sum) { return V::DotPairs(sum, x, x); }, V::Add));
  return rounds * V::kTileRows * 4 * V::kLanes * 4;
}

// Dot products of groups of 4 bytes, added to s32.
template <class V>
int64_t S8Peak(int64_t rounds, float* sink) {
  using Ints = typename V::Ints;
  const Ints x = V::SetByte(1);
  *sink = V::Sum(V::ToFloat(RunChains<V>(
      rounds, V::ZeroInts(), [&](Ints sum) { return V::DotBytes(sum, x, x); }, V::AddInts)));
  return rounds * V::kTileRows * 4 * V::kLanes * 8;
}

}  // namespace
}  // namespace latte::cpu
