// Arithmetic peak of AMX: four independent chains of tile products. The operands are zero, because
// products of other numbers take as many cycles but lower the clock (docs/kernels/amx.md).
#pragma once

#include <cstdint>

#include "src/kernels/cpu/isa/amx-inl.h"

namespace latte::cpu {
namespace {

template <class Step>
void RunTileChains(int64_t rounds, float* sink, const Step& step) {
  const TileScope scope{TileShapes{}};
  Amx::ZeroTile<0>();
  Amx::ZeroTile<1>();
  Amx::ZeroTile<2>();
  Amx::ZeroTile<3>();
  Amx::ZeroTile<4>();
  Amx::ZeroTile<5>();
  Amx::ZeroTile<6>();
  Amx::ZeroTile<7>();
  for (int64_t n = 0; n < rounds; ++n) step();
  alignas(64) float sums[kTileBytes / sizeof(float)];
  Amx::StoreTile<0>(sums, kTileRowBytes);
  *sink = sums[0];
}

inline int64_t AmxBf16Peak(int64_t rounds, float* sink) {
  RunTileChains(rounds, sink, [] {
    Amx::DotTiles<0, 4, 6>();
    Amx::DotTiles<1, 5, 6>();
    Amx::DotTiles<2, 4, 7>();
    Amx::DotTiles<3, 5, 7>();
  });
  return rounds * 4 * kTileMacsBf16 * 2;
}

inline int64_t AmxS8Peak(int64_t rounds, float* sink) {
  RunTileChains(rounds, sink, [] {
    Amx::DotByteTiles<0, 4, 6>();
    Amx::DotByteTiles<1, 5, 6>();
    Amx::DotByteTiles<2, 4, 7>();
    Amx::DotByteTiles<3, 5, 7>();
  });
  return rounds * 4 * kTileMacsInt8 * 2;
}

}  // namespace
}  // namespace latte::cpu
