// Register blocks of AMX tiles: kM × kN accumulator tiles, kM·kN ≤ 4, kN ≤ 2. A K step adds kM
// tiles of the AMX operand A times kN tiles of the AMX operand B. (GEMM kernels load weights as the
// AMX operand A and activations as B.)
//
// tmm0–3  accumulators, kN per row of A tiles     tmm4, 5  A, alternating     tmm6, 7  B
//
// Four independent accumulators hide the latency of a tile product (52 cycles, one issued per 16).
// 2×2 loads four tiles per four products; the loads take half as many cycles as the products.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/amx-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kStep = 32;                      // bf16 values in a tile of pairs row
constexpr int64_t kTilePairs = kTileSide * kStep;  // bf16 values in a tile of pairs
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

// at(i, j): memory of accumulator (i, j); row_bytes: stride of tile rows.
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

// Tile products of a K step.
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

// a(i), b(j): operand tiles of this K step.
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
