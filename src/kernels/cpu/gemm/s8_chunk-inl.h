// Operands of the VNNI kernels: int8 A and int8 or 4-bit B in chunks of 128 columns.
//
// vpdpbusd takes one unsigned operand, here B: int8 weights become w + 128 (one xor), 4-bit weights
// are unsigned as stored. `start` of a chunk of A compensates: −128 · rowsum, or, with zero points,
// zero · rowsum.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_dot-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxAChunks = 1536;  // 192 KiB
constexpr int64_t kSumLanes = 16;      // of a register of s32 sums

// How a chunk of a row of B becomes two registers of unsigned bytes, and one of A two registers of
// signed bytes. 4-bit values come out as even columns and odd columns: lane l of both covers
// columns 8l … 8l + 7, so a scale group of 32 has four lanes.
template <class V, class T>
struct S8Layout;

template <class VType>
struct S8Layout<VType, I8> {
  using V = VType;
  using T = I8;
  static constexpr int64_t kRowBytes = kChunkK;  // of a chunk
  static constexpr int32_t kZero = 128;
  // Half a chunk with `count` valid values; the others are unspecified.
  template <int64_t kLane256>
  static typename V::Ints Load(const I8* w) {
    return V::FlipSigns(V::LoadBytes(w + 64 * kLane256));
  }
  template <int64_t kLane256>
  static typename V::Ints Load(const I8* w, int64_t count) {
    return V::FlipSigns(
        V::LoadBytesPartial(w + 64 * kLane256, Max(0, Min(count - 64 * kLane256, 64))));
  }
  static void Layout(typename V::Ints (&)[2]) {}
  static void GroupsContiguous(typename V::Ints (&)[2]) {}
  // K step of lane `lane` of half `half` in a chunk whose scale groups are contiguous.
  static int64_t StepOf(int64_t half, int64_t lane) { return half * kSumLanes + lane; }
};

template <class VType>
struct S8Layout<VType, U4> {
  using V = VType;
  using T = U4;
  static constexpr int64_t kRowBytes = kChunkK / 2;
  static constexpr int32_t kZero = 8;
  template <int64_t kLane256>
  static typename V::Ints Load(const U4* w) {
    return Nibbles<kLane256>(V::LoadBytes(w));
  }
  template <int64_t kLane256>
  static typename V::Ints Load(const U4* w, int64_t count) {
    return Nibbles<kLane256>(V::LoadBytesPartial(w, (count + 1) / 2));
  }
  static void Layout(typename V::Ints (&x)[2]) {
    const typename V::Ints even = V::EvenBytes(x[0], x[1]);
    x[1] = V::OddBytes(x[0], x[1]);
    x[0] = even;
  }
  static void GroupsContiguous(typename V::Ints (&x)[2]) {
    const typename V::Ints even = x[0];
    x[0] = V::Interleave128Low(even, x[1]);
    x[1] = V::Interleave128High(even, x[1]);
  }
  static int64_t StepOf(int64_t half, int64_t lane) { return lane / 4 * 8 + half * 4 + lane % 4; }

 private:
  template <int64_t kLane256>
  static typename V::Ints Nibbles(typename V::Ints codes) {
    if constexpr (kLane256 == 0) return V::LowNibbles(codes);
    return V::HighNibbles(codes);
  }
};

using AChunks = S8A<kMaxAChunks * kChunkK, kMaxAChunks>;

// Sums of 16 / kGroups chunks as [scale group][chunk], from lane sums of four chunks each.
template <class V, int64_t kGroups>
inline typename V::Ints SumGroups(typename V::Ints (&quads)[4 / kGroups]) {
  if constexpr (kGroups == 1) {
    V::TransposeInts128(quads);
    return V::AddInts(V::AddInts(quads[0], quads[1]), V::AddInts(quads[2], quads[3]));
  } else {
    return quads[0];
  }
}

// A chunk of `count` valid values; the others are zero.
template <class V>
inline void LoadAChunk(const int8_t* x, int64_t count, typename V::Ints (&to)[2]) {
  for (int64_t half = 0; half < 2; ++half)
    to[half] = count >= kChunkK
                   ? V::LoadBytes(x + 64 * half)
                   : V::LoadBytesPartial(x + 64 * half, Max(0, Min(count - 64 * half, 64)));
}

// Packs columns [begin, +k) of A. kGroupsContiguous: the values of a scale group are contiguous;
// else they have the order of S8Layout.
template <class Kind, bool kGroupsContiguous>
void PackAChunks(const GemmTask& t, AChunks& to) {
  using V = typename Kind::V;
  constexpr int64_t kGroups = Kind::kGroups;
  constexpr int64_t kBatch = kSumLanes / kGroups;
  constexpr int32_t kFactor = Kind::kZeros ? 1 : -Kind::Layout::kZero;
  for (int64_t i = 0; i < to.rows; ++i) {
    const int8_t* const x = static_cast<const int8_t*>(t.x) + i * t.x_stride + to.begin;
    const float* const scale = t.x_scale + i * t.x_scale_stride;
    for (int64_t first = 0; first < to.chunks(); first += kBatch) {
      const int64_t count = Min(kBatch, to.chunks() - first);
      typename V::Ints lanes[4 / kGroups][4];
      for (int64_t c = 0; c < kBatch; ++c) {
        lanes[c / 4][c % 4] = V::ZeroInts();
        if (c >= count) continue;
        const int64_t k = (first + c) * kChunkK;
        typename V::Ints bytes[2];
        LoadAChunk<V>(x + k, to.k - k, bytes);
        Kind::Layout::Layout(bytes);
        lanes[c / 4][c % 4] = V::SumBytes(bytes[0], bytes[1]);
        if constexpr (kGroupsContiguous) Kind::Layout::GroupsContiguous(bytes);
        const int64_t at = to.At(i, first + c);
        V::StoreBytes(to.codes + at * kChunkK, bytes[0]);
        V::StoreBytes(to.codes + at * kChunkK + 64, bytes[1]);
        to.scale[at] = scale[t.x_group == kChunkK ? to.begin / kChunkK + first + c
                                                  : (to.begin + k) / t.x_group];
      }
      typename V::Ints quads[4 / kGroups];
      for (int64_t j = 0; j < 4 / kGroups; ++j) quads[j] = V::SumQuads(lanes[j]);
      alignas(64) int32_t sums[kSumLanes];
      V::StoreBytes(sums, SumGroups<V, kGroups>(quads));
      for (int64_t c = 0; c < count; ++c)
        for (int64_t group = 0; group < kGroups; ++group)
          to.start[to.At(i, first + c) * kGroups + group] = kFactor * sums[group * kBatch + c];
    }
  }
}

}  // namespace
}  // namespace latte::cpu
