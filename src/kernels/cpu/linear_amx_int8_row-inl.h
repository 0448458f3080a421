// Up to LaneRows() rows of x for linear_amx_int8-inl.h, one after the other over each block of W
// and in the same order: lanes of f32 are outputs. Weights are multiplied in vectors: integer sums
// are exact in any order, tiles would read lines that are not near yet one tile at a time, and
// 4-bit weights would have to be unpacked for them.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/amx_byte_blocks-inl.h"

namespace latte::cpu {
namespace {

// More rows cost more in vectors than on tiles, for which 4-bit weights have to be laid out.
inline int64_t LaneRows(Element w_type) { return w_type == Element::kU4 ? 5 : 2; }

// The block's columns of a row of x.
inline void PlaceRow(ByteProduct& s, const ByteBlock& block, int64_t x_row) {
  const LinearTask& t = *s.t;
  const auto* const x = static_cast<const int8_t*>(t.x) + x_row * t.x_stride;
  const float* const scale = t.x_scale + x_row * t.x_scale_stride;
  RowChunk* to = s.row;
  for (int64_t k = block.begin; k < block.end; k += kByteChunk, ++to) {
    Bytes chunk[2];
    LoadChunk(x + k, t.k - k, chunk);
    to->scale = scale[k / t.x_group];
    int32_t bias = 128;  // bytes become unsigned by it
    if (t.w_type == Element::kU4) {
      const Bytes even = Avx512Vnni::EvenBytes(chunk[0], chunk[1]);
      chunk[1] = Avx512Vnni::OddBytes(chunk[0], chunk[1]);
      chunk[0] = even;
      bias = t.grid.zero == nullptr ? 8 : -1;
    }
    Avx512Vnni::StoreBytes(to->start, Avx512Vnni::MulInts(Avx512Vnni::SumBytes(chunk[0], chunk[1]),
                                                          Avx512Vnni::SetInt(-bias)));
    for (int64_t i = 0; i < 2; ++i) Avx512Vnni::StoreBytes(to->codes[i], chunk[i]);
  }
}

// Sums of 16 outputs, tile i of the block.
template <bool kOneScale>
inline void StoreRowSums(const ByteProduct& s, const ByteBlock& block, int64_t i, Amx::Vec total,
                         float* y) {
  const bool last = kOneScale && block.end == s.t->k;
  Amx::Store(y, last ? Amx::Mul(total, Amx::Load(s.scale + i * kTileSide)) : total);
}

// int8: sums of four parts of a chunk and 16 rows of W, lanes are rows.
template <bool kWhole>
inline void MultiplyBytesInLanes(const LinearTask& t, const RowChunk& x, int64_t output, int64_t k,
                                 int64_t count, Bytes (&runs)[kChunkRuns]) {
  const Bytes codes[2] = {Avx512Vnni::LoadBytes(x.codes[0]), Avx512Vnni::LoadBytes(x.codes[1])};
  const Bytes start = Avx512Vnni::LoadBytes(x.start);
  for (int64_t i = 0; i < kTileSide; i += 4) {
    Bytes sums[4];
    for (int64_t j = 0; j < 4; ++j) {
      const char* const w = WeightAt(t, Min(output + i + j, t.n - 1), k);
      Bytes chunk[2];
      if constexpr (kWhole)
        for (int64_t half = 0; half < 2; ++half)
          chunk[half] = Avx512Vnni::LoadBytes(w + half * kByteStep);
      else
        LoadChunk(reinterpret_cast<const int8_t*>(w), count, chunk);
      sums[j] = start;
      for (int64_t half = 0; half < 2; ++half)
        sums[j] = Avx512Vnni::DotBytes(sums[j], Avx512Vnni::FlipSigns(chunk[half]), codes[half]);
    }
    runs[i / 4] = Avx512Vnni::SumQuads(sums);
  }
  Avx512Vnni::TurnQuarters(runs);
}

// 4 bits: sums of four runs of a chunk and 16 rows of W, lanes are rows.
template <bool kZeros, bool kWhole>
inline void MultiplyNibblesInLanes(const LinearTask& t, const RowChunk& x, int64_t output,
                                   int64_t k, int64_t count, Bytes (&runs)[kChunkRuns]) {
  const Bytes even = Avx512Vnni::LoadBytes(x.codes[0]);
  const Bytes odd = Avx512Vnni::LoadBytes(x.codes[1]);
  const Bytes start = Avx512Vnni::LoadBytes(x.start);
  for (int64_t i = 0; i < kTileSide; i += 4) {
    Bytes sums[4];
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t n = Min(output + i + j, t.n - 1);
      const char* const w = WeightAt(t, n, k);
      const Bytes packed =
          kWhole ? Avx512Vnni::LoadBytes(w) : Avx512Vnni::LoadBytesPartial(w, (count + 1) / 2);
      sums[j] = start;
      if constexpr (kZeros)
        sums[j] = Avx512Vnni::MulInts(
            start, Avx512Vnni::MinusQuartersOf(ChunkZeros(t.grid, n, k, k + count)));
      sums[j] = Avx512Vnni::DotBytes(sums[j], Avx512Vnni::LowNibbles(packed), even);
      sums[j] = Avx512Vnni::DotBytes(sums[j], Avx512Vnni::HighNibbles(packed), odd);
    }
    runs[i / 4] = Avx512Vnni::SumQuads(sums);
  }
  Avx512Vnni::TurnQuarters(runs);
}

// 128 columns of 16 rows of W, fewer at the end of a row.
template <bool kZeros>
inline void MultiplyInLanes(const LinearTask& t, const RowChunk& x, int64_t output, int64_t k,
                            int64_t count, Bytes (&runs)[kChunkRuns]) {
  const bool whole = count == kByteChunk;
  if (t.w_type == Element::kI8) {
    if (whole) return MultiplyBytesInLanes<true>(t, x, output, k, count, runs);
    return MultiplyBytesInLanes<false>(t, x, output, k, count, runs);
  }
  if (whole) return MultiplyNibblesInLanes<kZeros, true>(t, x, output, k, count, runs);
  return MultiplyNibblesInLanes<kZeros, false>(t, x, output, k, count, runs);
}

template <bool kOneScale, int64_t kRuns, bool kZeros>
inline void AddRowInLanes(ByteProduct& s, const ByteBlock& block, int64_t x_row) {
  const LinearTask& t = *s.t;
  const int64_t tiles = (block.rows + kTileSide - 1) / kTileSide;
  s.ahead.SetParts(s.ahead.chunks * tiles * s.x_tiles);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t output = block.output + i * kTileSide;
    float* const y = s.Sums(output / kTileSide, x_row);
    Amx::Vec total = block.begin == 0 ? Amx::Zero() : Amx::Load(y);
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
      s.ahead.Ask();
      const int64_t k = block.begin + chunk * kByteChunk;
      const int64_t count = Min(kByteChunk, block.end - k);
      Bytes runs[kChunkRuns];
      MultiplyInLanes<kZeros>(t, s.row[chunk], output, k, count, runs);
      if constexpr (kRuns == 1)
        runs[0] = Avx512Vnni::AddInts(Avx512Vnni::AddInts(runs[0], runs[1]),
                                      Avx512Vnni::AddInts(runs[2], runs[3]));
      const float* const scale = s.scale + chunk * kRuns * kBytePanelRows + i * kTileSide;
      total = AddChunkOf<kOneScale, kRuns>(
          [&](int64_t run) { return Avx512Vnni::ToFloat(runs[run]); },
          [&](int64_t run) { return Amx::Load(scale + run * kBytePanelRows); },
          Amx::Set1(s.row[chunk].scale), total);
    }
    StoreRowSums<kOneScale>(s, block, i, total, y);
  }
}

template <bool kOneScale, int64_t kRuns>
inline void MultiplyRows(ByteProduct& s, const ByteBlock& block) {
  for (int64_t x_row = 0; x_row < s.x_tiles; ++x_row) {
    PlaceRow(s, block, x_row);
    if (s.t->grid.zero == nullptr)
      AddRowInLanes<kOneScale, kRuns, false>(s, block, x_row);
    else
      AddRowInLanes<kOneScale, kRuns, true>(s, block, x_row);
  }
}

}  // namespace
}  // namespace latte::cpu
