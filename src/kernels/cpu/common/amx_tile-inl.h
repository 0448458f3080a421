// Blocks of tiles: kM × kN tiles of sums in registers, four at most, to which one step along the
// common dimension adds kM tiles of A times kN tiles of B.
//
//   tiles 0–3  sums, kN of each row of A     4, 5  A, in turn     6, 7  B
//
// Four independent chains hide the latency of a tile product (52 cycles, one started every 16), and
// 2 × 2 loads four tiles for four products, which the L1 can do in half their time.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/amx-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kStep = 32;                      // bf16 of a row of a tile
constexpr int64_t kTilePairs = kTileSide * kStep;  // bf16 of a tile
constexpr int64_t kTileSums = kTileSide * kTileSide;

// A tile in memory.
struct TileAt {
  const void* data;
  int64_t row_bytes;
};

// Calls f(Int<0>) … f(Int<kCount − 1>).
template <int64_t kCount, class F>
inline void ForEachIndex(const F& f) {
  if constexpr (kCount > 0) {
    ForEachIndex<kCount - 1>(f);
    f(Int<kCount - 1>{});
  }
}

template <int64_t kM, int64_t kN>
inline void ZeroSums() {
  static_assert(kM * kN <= 4 && kN <= 2);
  ForEachIndex<kM * kN>([](auto i) { Amx::ZeroTile<i.value>(); });
}

// at(i, j): where the sums of row i and column j of the block lie; row_bytes: from one row of a
// tile to the next.
template <int64_t kM, int64_t kN, class At>
inline void LoadSums(const At& at, int64_t row_bytes = kTileRowBytes) {
  ForEachIndex<kM * kN>(
      [&](auto i) { Amx::LoadTile<i.value>(at(i.value / kN, i.value % kN), row_bytes); });
}
template <int64_t kM, int64_t kN, class At>
inline void StoreSums(const At& at, int64_t row_bytes = kTileRowBytes) {
  ForEachIndex<kM * kN>(
      [&](auto i) { Amx::StoreTile<i.value>(at(i.value / kN, i.value % kN), row_bytes); });
}

// What a step adds.
struct DotPairs {
  template <int kC, int kA, int kB>
  static void Add() {
    Amx::DotTiles<kC, kA, kB>();
  }
};
struct DotBytes {
  template <int kC, int kA, int kB>
  static void Add() {
    Amx::DotByteTiles<kC, kA, kB>();
  }
};
struct DotUnsignedBytes {
  template <int kC, int kA, int kB>
  static void Add() {
    Amx::DotUnsignedByteTiles<kC, kA, kB>();
  }
};

// a(i), b(j): tiles of this step.
template <int64_t kM, int64_t kN, class Dot = DotPairs, class A, class B>
inline void AddStep(const A& a, const B& b) {
  ForEachIndex<kN>([&](auto j) {
    const TileAt tile = b(j.value);
    Amx::LoadTile<6 + j.value>(tile.data, tile.row_bytes);
  });
  ForEachIndex<kM>([&](auto i) {
    constexpr int64_t kRow = decltype(i)::value;
    const TileAt tile = a(kRow);
    Amx::LoadTile<4 + kRow % 2>(tile.data, tile.row_bytes);
    ForEachIndex<kN>([](auto j) {
      constexpr int64_t kColumn = decltype(j)::value;
      Dot::template Add<kRow * kN + kColumn, 4 + kRow % 2, 6 + kColumn>();
    });
  });
}

}  // namespace
}  // namespace latte::cpu
