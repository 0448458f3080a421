// Up to LaneRows() rows of x for gemm_amx_s8-inl.h, in the same order: lanes of f32 are
// outputs. Weights are multiplied in vectors: integer sums are exact in any order, tiles would read
// lines that are not near yet one tile at a time, and 4-bit weights would have to be laid out for
// them.
//
// Each of 16 rows asks for its lines four chunks ahead, at its end for the first ones of the row
// that takes its place. Rows shorter than three quarters of a page are taken two apart, so that 16
// lie in as many pages: lane l of tile i is then row 2l + i of a block. For rows below a quarter of
// a page memory is asked as for tiles.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/gemm/amx_block_s8-inl.h"

namespace latte::cpu {
namespace {

// More rows cost more in vectors than on tiles.
inline int64_t LaneRows(Element w_type) { return w_type == Element::kU4 ? kMaxLaneRows : 5; }

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

constexpr int64_t kLaneAhead = 4;  // chunks

// Whether rows ask for their own lines.
inline bool AsksByRows(const LinearTask& t) { return 4 * t.w_stride >= kPage; }
// Whether the two tiles of a block take its rows in turn.
inline bool InTurn(const LinearTask& t, int64_t rows) {
  return rows == kBytePanelRows && AsksByRows(t) && 4 * t.w_stride < 3 * kPage;
}
// Numbers of the block's 32 rows from a tile's lanes, and the other way round.
struct LaneOrder {
  alignas(64) int32_t row[2][kTileSide];
  alignas(64) int32_t lane[2][kTileSide];
};
constexpr LaneOrder MakeLaneOrder(bool in_turn) {
  LaneOrder out = {};
  for (int32_t i = 0; i < kBytePanelRows; ++i) {
    const int32_t row = in_turn ? i % kTileSide * 2 + i / kTileSide : i;
    out.row[i / kTileSide][i % kTileSide] = row;
    out.lane[row / kTileSide][row % kTileSide] = i;
  }
  return out;
}
inline constexpr LaneOrder kLaneOrders[2] = {MakeLaneOrder(false), MakeLaneOrder(true)};
inline const LaneOrder& OrderOf(const LinearTask& t, int64_t rows) {
  return kLaneOrders[InTurn(t, rows) ? 1 : 0];
}

// The rows of a tile of a block, from the block's first column on. Behind the last row it is there
// again.
struct TileRows {
  const char* row[kTileSide];

  void Find(const LinearTask& t, const ByteBlock& block, int64_t tile) {
    const LaneOrder& order = OrderOf(t, block.rows);
    const char* const first = WeightAt(t, block.output, block.begin);
    for (int64_t i = 0; i < kTileSide; ++i)
      row[i] = first + Min(order.row[tile][i], block.rows - 1) * t.w_stride;
  }
};

// 128 columns of 16 rows of W, fewer at the end of a row.
struct LaneChunk {
  const char* const* row;    // of 16; in memory, there are too many for registers
  const int32_t* number;     // of a row in the block
  int64_t output;            // of the block
  int64_t k, count;          // columns
  int64_t at;                // bytes of a row before column k
  const char* const* ahead;  // what is asked for: rows
  int64_t ahead_at;          // and bytes before it

  const char* Row(int64_t i) const { return row[i] + at; }
};

// Row i of W in a chunk as two vectors of unsigned bytes: codes and 128; 4-bit codes, of even
// columns and of odd ones.
template <Element kType, bool kByRows, bool kWhole>
inline void LoadCodes(const LaneChunk& c, int64_t i, Bytes (&to)[2]) {
  const char* const w = c.Row(i);
  if constexpr (kByRows)
    for (int64_t line = 0; line < kByteChunk / ValuesOf(kType); line += 64)
      PrefetchNear(c.ahead[i], c.ahead_at + line);
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
template <Element kType, bool kByRows, bool kZeros, bool kWhole>
inline void MultiplyInLanes(const LinearTask& t, const LaneChunk& c, const RowChunk* x,
                            LaneRuns* runs) {
  for (int64_t i = 0; i < kTileSide; i += 4) {
    Bytes codes[4][2], zeros[4];
    for (int64_t j = 0; j < 4; ++j) {
      LoadCodes<kType, kByRows, kWhole>(c, i + j, codes[j]);
      if constexpr (kZeros)
        zeros[j] = Avx512Vnni::MinusQuartersOf(
            ChunkZeros(t.grid, Min(c.output + c.number[i + j], t.n - 1), c.k, c.k + c.count));
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

// Scales of a tile's lanes; kByRows: from those of the block's rows.
template <bool kByRows>
inline Amx::Vec LaneScales(const float* scale, const int32_t* number) {
  if constexpr (!kByRows) return Amx::Load(scale);
  return Amx::Pick(Amx::Load(scale), Amx::Load(scale + kTileSide), Amx::LoadWords(number));
}

// Adds a chunk's sums of one row of x to `total`, lanes are rows of W.
template <bool kOneScale, int64_t kRuns, bool kByRows>
inline Amx::Vec AddLaneRuns(const LaneRuns& from, const float* scale, const int32_t* number,
                            float x, Amx::Vec total) {
  Bytes runs[kChunkRuns];
  for (int64_t run = 0; run < kChunkRuns; ++run) runs[run] = Avx512Vnni::LoadBytes(from.sums[run]);
  Avx512Vnni::TurnQuarters(runs);
  if constexpr (kRuns == 1)
    runs[0] = Avx512Vnni::AddInts(Avx512Vnni::AddInts(runs[0], runs[1]),
                                  Avx512Vnni::AddInts(runs[2], runs[3]));
  return AddChunkOf<Avx512Vnni, kOneScale, kRuns>(
      [&](int64_t run) { return Avx512Vnni::ToFloat(runs[run]); },
      [&](int64_t run) { return LaneScales<kByRows>(scale + run * kBytePanelRows, number); },
      Amx::Set1(x), total);
}

// Adds the runs of a chunk to the sums of a tile; `ends`: it is the last chunk of all.
template <bool kOneScale, int64_t kRuns, bool kByRows>
inline void AddLanes(const ByteProduct& s, const LaneChunk& c, const RowChunk* x,
                     const LaneRuns* runs, const float* tile_scale, int64_t first_run, bool ends,
                     float* y) {
  const float* const scale = tile_scale + first_run * kBytePanelRows;
  for (int64_t row = 0; row < s.t->m; ++row) {
    float* const to = y + row * kTileSide;
    Amx::Vec total = c.k == 0 ? Amx::Zero() : Amx::Load(to);
    total = AddLaneRuns<kOneScale, kRuns, kByRows>(runs[row], scale, c.number, x[row].scale, total);
    if (kOneScale && ends) total = Amx::Mul(total, LaneScales<kByRows>(tile_scale, c.number));
    Amx::Store(to, total);
  }
}

// Rows that ask for their own lines.
template <Element kType, bool kOneScale, int64_t kRuns, bool kZeros>
inline void MultiplyByRows(ByteProduct& s, const ByteBlock& block) {
  constexpr int64_t kChunkBytes = kByteChunk / ValuesOf(kType);
  const LinearTask& t = *s.t;
  const int64_t tiles = (block.rows + kTileSide - 1) / kTileSide;
  const LaneOrder& order = OrderOf(t, block.rows);
  LaneRuns runs[kMaxLaneRows];
  TileRows rows, next;
  rows.Find(t, block, 0);
  // One scale per row is a line or two, and to look for lines at every chunk costs time.
  s.ahead->SetParts(kOneScale ? 1 : s.ahead->chunks * tiles);
  if (kOneScale) s.ahead->Ask();
  for (int64_t i = 0; i < tiles; ++i) {
    float* const y = s.Sums(block.output / kTileSide + i, 0);
    if (i + 1 < tiles)
      next.Find(t, block, i + 1);
    else if (s.ahead->task != nullptr)
      next.Find(*s.ahead->task, s.ahead->block, 0);
    else
      next = rows;  // nothing follows: lines that are here already
    LaneChunk c = {rows.row, order.row[i], block.output, 0, 0, 0, rows.row, 0};
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
      if (!kOneScale) s.ahead->Ask();
      c.k = block.begin + chunk * kByteChunk;
      c.count = Min(kByteChunk, block.end - c.k);
      c.at = chunk * kChunkBytes;
      const int64_t ahead = chunk + kLaneAhead;
      const bool passes_on = ahead >= block.chunks();
      if (passes_on) c.ahead = next.row;
      c.ahead_at = (ahead - (passes_on ? block.chunks() : 0)) * kChunkBytes;
      const RowChunk* const x = &s.Row(chunk, 0);
      if (c.count == kByteChunk)
        MultiplyInLanes<kType, true, kZeros, true>(t, c, x, runs);
      else
        MultiplyInLanes<kType, true, kZeros, false>(t, c, x, runs);
      AddLanes<kOneScale, kRuns, true>(s, c, x, runs, s.scale, chunk * kRuns, c.k + c.count == t.k,
                                       y);
    }
    rows = next;
  }
}

// Short rows, for which memory is asked as for tiles.
template <Element kType, bool kOneScale, int64_t kRuns, bool kZeros>
inline void MultiplyTogether(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  const int64_t tiles = (block.rows + kTileSide - 1) / kTileSide;
  LaneRuns runs[kMaxLaneRows];
  TileRows rows;
  s.ahead->SetParts(s.ahead->chunks * tiles);
  for (int64_t i = 0; i < tiles; ++i) {
    float* const y = s.Sums(block.output / kTileSide + i, 0);
    const LaneOrder& order = OrderOf(t, block.rows);
    rows.Find(t, block, i);
    LaneChunk c = {rows.row, order.row[i], block.output, 0, 0, 0, nullptr, 0};
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
      s.ahead->Ask();
      c.k = block.begin + chunk * kByteChunk;
      c.count = Min(kByteChunk, block.end - c.k);
      c.at = chunk * (kByteChunk / ValuesOf(kType));
      const RowChunk* const x = &s.Row(chunk, 0);
      if (c.count == kByteChunk)
        MultiplyInLanes<kType, false, kZeros, true>(t, c, x, runs);
      else
        MultiplyInLanes<kType, false, kZeros, false>(t, c, x, runs);
      AddLanes<kOneScale, kRuns, false>(s, c, x, runs, s.scale + i * kTileSide, chunk * kRuns,
                                        c.k + c.count == t.k, y);
    }
  }
}

// Sums of 16 outputs from `output` on and a row of x.
inline Amx::Vec LaneSums(ByteProduct& s, int64_t output, int64_t row) {
  const int64_t first = output / kBytePanelRows * kBytePanelRows;
  const LaneOrder& order = OrderOf(*s.t, Min(kBytePanelRows, s.t->n - first));
  const float* const low = s.Sums(first / kTileSide, row);
  const float* const high = s.Sums(first / kTileSide + 1, row);
  return Amx::Pick(Amx::Load(low), Amx::Load(high),
                   Amx::LoadWords(order.lane[(output - first) / kTileSide]));
}

template <Element kType, bool kOneScale, int64_t kRuns, bool kZeros>
inline void MultiplyRowsOf(ByteProduct& s, const ByteBlock& block) {
  if (AsksByRows(*s.t))
    MultiplyByRows<kType, kOneScale, kRuns, kZeros>(s, block);
  else
    MultiplyTogether<kType, kOneScale, kRuns, kZeros>(s, block);
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
