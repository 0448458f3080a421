// Up to LaneRows() rows of x for linear_amx_int8-inl.h, in the same order: lanes of f32 are
// outputs. Weights are multiplied in vectors: integer sums are exact in any order, tiles would read
// lines that are not near yet one tile at a time, and 4-bit weights would have to be laid out for
// them.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/amx_byte_blocks-inl.h"

namespace latte::cpu {
namespace {

// More rows cost more in vectors than on tiles.
inline int64_t LaneRows(Element w_type) { return w_type == Element::kU4 ? kMaxLaneRows : 3; }

// The block's columns of a row of x.
inline void PlaceRow(ByteProduct& s, const ByteBlock& block, int64_t x_row) {
  const LinearTask& t = *s.t;
  const auto* const x = static_cast<const int8_t*>(t.x) + x_row * t.x_stride;
  const float* const scale = t.x_scale + x_row * t.x_scale_stride;
  for (int64_t k = block.begin; k < block.end; k += kByteChunk) {
    RowChunk* const to = &s.Row((k - block.begin) / kByteChunk, x_row);
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

// 128 columns of 16 rows of W, fewer at the end of a row. Behind the last row it is there again.
struct LaneChunk {
  const char* const* row;  // of 16, from column 0 on; in memory, there are too many for registers
  int64_t output;          // of the first row
  int64_t k, count;        // columns
  int64_t at;              // bytes of a row before column k

  const char* Row(int64_t i) const { return row[i] + at; }
};

// Row i of W in a chunk as two vectors of unsigned bytes: codes and 128; 4-bit codes, of even
// columns and of odd ones.
template <Element kType, bool kWhole>
inline void LoadCodes(const LaneChunk& c, int64_t i, Bytes (&to)[2]) {
  const char* const w = c.Row(i);
  if constexpr (kType == Element::kU4) {
    const Bytes packed =
        kWhole ? Avx512Vnni::LoadBytes(w) : Avx512Vnni::LoadBytesPartial(w, (c.count + 1) / 2);
    to[0] = Avx512Vnni::LowNibbles(packed);
    to[1] = Avx512Vnni::HighNibbles(packed);
    return;
  }
  if constexpr (kWhole)
    for (int64_t half = 0; half < 2; ++half) to[half] = Avx512Vnni::LoadBytes(w + half * kByteStep);
  else
    LoadChunk(reinterpret_cast<const int8_t*>(w), c.count, to);
  for (Bytes& half : to) half = Avx512Vnni::FlipSigns(half);
}

// Sums of the four parts of a chunk, of 16 rows of W and all of x; lanes are rows of W. Four rows
// of W stay in registers while those of x pass.
template <Element kType, bool kZeros, bool kWhole>
inline void MultiplyInLanes(const LinearTask& t, const LaneChunk& c, const RowChunk* x,
                            LaneRuns* runs) {
  for (int64_t i = 0; i < kTileSide; i += 4) {
    Bytes codes[4][2], zeros[4];
    for (int64_t j = 0; j < 4; ++j) {
      LoadCodes<kType, kWhole>(c, i + j, codes[j]);
      if constexpr (kZeros)
        zeros[j] = Avx512Vnni::MinusQuartersOf(
            ChunkZeros(t.grid, Min(c.output + i + j, t.n - 1), c.k, c.k + c.count));
    }
    for (int64_t x_row = 0; x_row < t.m; ++x_row) {
      const RowChunk& row = x[x_row];
      const Bytes start = Avx512Vnni::LoadBytes(row.start);
      Bytes sums[4];
      for (int64_t j = 0; j < 4; ++j) {
        sums[j] = start;
        if constexpr (kZeros) sums[j] = Avx512Vnni::MulInts(start, zeros[j]);
        for (int64_t half = 0; half < 2; ++half)
          sums[j] =
              Avx512Vnni::DotBytes(sums[j], codes[j][half], Avx512Vnni::LoadBytes(row.codes[half]));
      }
      Avx512Vnni::StoreBytes(runs[x_row].sums[i / 4], Avx512Vnni::SumQuads(sums));
    }
  }
}

// Adds a chunk's sums of one row of x to `total`, lanes are rows of W.
template <bool kOneScale, int64_t kRuns>
inline Amx::Vec AddLaneRuns(const LaneRuns& from, const float* scale, float x, Amx::Vec total) {
  Bytes runs[kChunkRuns];
  for (int64_t run = 0; run < kChunkRuns; ++run) runs[run] = Avx512Vnni::LoadBytes(from.sums[run]);
  Avx512Vnni::TurnQuarters(runs);
  if constexpr (kRuns == 1)
    runs[0] = Avx512Vnni::AddInts(Avx512Vnni::AddInts(runs[0], runs[1]),
                                  Avx512Vnni::AddInts(runs[2], runs[3]));
  return AddChunkOf<Avx512Vnni, kOneScale, kRuns>(
      [&](int64_t run) { return Avx512Vnni::ToFloat(runs[run]); },
      [&](int64_t run) { return Amx::Load(scale + run * kBytePanelRows); }, Amx::Set1(x), total);
}

template <Element kType, bool kOneScale, int64_t kRuns, bool kZeros>
inline void MultiplyRowsOf(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  const int64_t tiles = (block.rows + kTileSide - 1) / kTileSide;
  const bool ends = block.end == t.k;
  LaneRuns runs[kMaxLaneRows];
  s.ahead.SetParts(s.ahead.chunks * tiles);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t output = block.output + i * kTileSide;
    float* const y = s.Sums(output / kTileSide, 0);
    for (int64_t row = 0; row < kTileSide; ++row)
      s.lane_rows[row] = WeightAt(t, Min(output + row, t.n - 1), 0);
    LaneChunk c = {s.lane_rows, output, block.begin, 0, 0};
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
      s.ahead.Ask();
      c.k = block.begin + chunk * kByteChunk;
      c.count = Min(kByteChunk, block.end - c.k);
      c.at = c.k / ValuesOf(kType);
      const RowChunk* const x = &s.Row(chunk, 0);
      if (c.count == kByteChunk)
        MultiplyInLanes<kType, kZeros, true>(t, c, x, runs);
      else
        MultiplyInLanes<kType, kZeros, false>(t, c, x, runs);
      const float* const scale = s.scale + chunk * kRuns * kBytePanelRows + i * kTileSide;
      for (int64_t row = 0; row < t.m; ++row) {
        float* const to = y + row * kTileSide;
        Amx::Vec total = block.begin + chunk == 0 ? Amx::Zero() : Amx::Load(to);
        total = AddLaneRuns<kOneScale, kRuns>(runs[row], scale, x[row].scale, total);
        if (kOneScale && ends && chunk + 1 == block.chunks())
          total = Amx::Mul(total, Amx::Load(s.scale + i * kTileSide));
        Amx::Store(to, total);
      }
    }
  }
}

template <bool kOneScale, int64_t kRuns>
inline void MultiplyRows(ByteProduct& s, const ByteBlock& block) {
  for (int64_t x_row = 0; x_row < s.x_tiles; ++x_row) PlaceRow(s, block, x_row);
  if (s.t->w_type == Element::kI8)
    MultiplyRowsOf<Element::kI8, kOneScale, kRuns, false>(s, block);
  else if (s.t->grid.zero == nullptr)
    MultiplyRowsOf<Element::kU4, kOneScale, kRuns, false>(s, block);
  else
    MultiplyRowsOf<Element::kU4, kOneScale, kRuns, true>(s, block);
}

}  // namespace
}  // namespace latte::cpu
