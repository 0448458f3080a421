// linear on tiles: int8 and 4-bit weights times activations of 8 bits.
//
//   Iᵀ[16 outputs × 16 rows of x] = W[16 outputs × run] · Xᵀ[run × 16 rows of x]   exact, int32
//   Yᵀ += (Σ over the runs of a chunk: w_scale · I) · x_scale                      f32
//
// Work      32 outputs and up to 32 rows of x at a time, 2 × 2 tiles. A chunk is 128 columns, of
//           which x has one scale; a run is a chunk or, where a 4-bit weight has more scales, 32
//           columns. Sums of runs are stored and read again as f32 in batches of four runs, so that
//           a store is long done when it is read. Rows of int8 weights are operand A where they lie
//           for up to 32 rows of x; for more, and for 4-bit weights, a block of 32 rows × 1024
//           columns is laid out side by side (32 KiB). While a block is used the next one is asked
//           for. x is packed once per call; a single row is its own operand, and lanes of f32 are
//           outputs then instead of rows of x.
// Order     chunks in order. In a chunk runs in order, the first multiplied by its scale, the others
//           added by fused multiply-adds; then times the scale of x, added to the sum likewise.
//           Where a row of W has one scale it multiplies the finished sum. The bias is last.
// Limits    groups of x are multiples of 128; scales of W begin at multiples of 128, of 4-bit ones
//           at multiples of 32, or are one along K; rows and outputs as in linear_amx-inl.h; stack
//           1.1 MiB, of which rows and outputs decide what is touched.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/amx_blocks-inl.h"
#include "src/kernels/cpu/amx_bytes-inl.h"
#include "src/kernels/cpu/linear_amx-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kByteBlockChunks = 8;
constexpr int64_t kByteBlock = kByteBlockChunks * kByteChunk;  // columns of a panel
constexpr int64_t kBytePanelRows = 2 * kTileSide;
constexpr int64_t kBatchTiles = 8;  // 8 KiB of integer sums


// Cache lines of rows, asked for along the rows.
struct LinesAhead {
  const char* row = nullptr;
  int64_t stride = 0, bytes = 0, rows = 0;
  int64_t at = 0;  // byte of the row that is asked for next

  int64_t lines() const { return (bytes + kLine - 1) / kLine * rows; }
  void Ask(int64_t count) {
    const char* p = row;
    int64_t byte = at;
    for (; count > 0 && rows > 0; --count) {
      Amx::Prefetch(p + byte);
      byte += kLine;
      if (byte < bytes) continue;
      byte = 0;
      p += stride;
      --rows;
    }
    row = p;
    at = byte;
  }

 private:
  static constexpr int64_t kLine = 64;
};

// 128 columns of a single row of x.
struct alignas(64) RowChunk {
  int8_t codes[2][kByteStep];  // beside 4-bit weights the even ones, then the odd ones
  int32_t start[kTileSide];  // −8 · the sum of a lane of both; beside zeros of their own the sum
  float scale;
};

struct ByteProduct {
  alignas(64) float sums[kMaxTileActivations * kMaxTileOutputs];  // [tile of W][tile of x][16, 16]
  alignas(64) int8_t panel[2 * kByteBlock * kTileSide];           // [tile of W][step][16, 64]
  alignas(64) int32_t runs[2][kBatchTiles * kTileSums];           // sums of a batch and the last one
  alignas(64) float scale[kByteBlock / kShortRun * kBytePanelRows];  // [run][row]
  RowChunk row[kByteBlockChunks];                                    // a block of a single row of x
  const LinearTask* t;
  int64_t x_tiles, x_rows;   // rows of x in a tile: 16 or 1
  int64_t chunks;            // of all of K
  // The block's operand A, in the panel or in place: bytes from one row, tile and step to the next.
  const int8_t* a;
  int64_t a_row, a_tile, a_step;
  LinesAhead ahead;

  float* Sums(int64_t w_tile, int64_t x_tile) {
    return sums + (w_tile * x_tiles + x_tile) * kTileSide * x_rows;
  }
  const ByteColumns& X(int64_t x_tile, int64_t chunk) const {
    return static_cast<const ByteColumns*>(t->packed)[x_tile * chunks + chunk];
  }
};

// 32 outputs from `output` on and columns [begin, end) of a task.
struct ByteBlock {
  int64_t output, rows, begin, end;

  int64_t chunks() const { return (end - begin + kByteChunk - 1) / kByteChunk; }
};

inline const char* WeightAt(const LinearTask& t, int64_t output, int64_t k) {
  const int64_t values = t.w_type == Element::kU4 ? 2 : 1;
  return static_cast<const char*>(t.w) + output * t.w_stride + k / values;
}

// A chunk of row n, of which `count` columns are there, laid out as two tile rows.
template <bool kWhole>
inline void FillChunk(const LinearTask& t, int64_t n, int64_t k, int64_t count, int8_t* to) {
  const char* const from = WeightAt(t, n, k);
  Bytes chunk[2];
  if (t.w_type == Element::kU4) {
    const Bytes zeros = t.grid.zero == nullptr
                            ? Avx512Vnni::SetByte(8)
                            : Avx512Vnni::QuartersOf(ChunkZeros(t.grid, n, k, k + count));
    UnpackChunk(kWhole ? Avx512Vnni::LoadBytes(from)
                       : Avx512Vnni::LoadBytesPartial(from, Min((count + 1) / 2, kByteStep)),
                zeros, chunk);
  } else {
    LoadChunk(reinterpret_cast<const int8_t*>(from), kWhole ? kByteChunk : count, chunk);
  }
  Avx512Vnni::StoreBytes(to, chunk[0]);
  Avx512Vnni::StoreBytes(to + kByteTile, chunk[1]);
}

// Lays a block of W out in the panel; rows behind the last are zero.
inline void FillPanel(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  for (int64_t i = 0; i < kBytePanelRows; ++i) {
    int8_t* to = s.panel + i / kTileSide * kByteBlock * kTileSide +
                 i % kTileSide * kByteStep;
    if (i >= block.rows) {
      for (int64_t step = 0; step < 2 * block.chunks(); ++step)
        Avx512Vnni::StoreBytes(to + step * kByteTile, Avx512Vnni::ZeroInts());
      continue;
    }
    int64_t k = block.begin;
    for (; k + kByteChunk <= block.end; k += kByteChunk, to += 2 * kByteTile)
      FillChunk<true>(t, block.output + i, k, kByteChunk, to);
    if (k < block.end) FillChunk<false>(t, block.output + i, k, block.end - k, to);
  }
  s.a = s.panel;
  s.a_row = kByteStep;
  s.a_tile = kByteBlock * kTileSide;
  s.a_step = kByteTile;
}

// Whether rows can be operand A where they lie: nothing behind the last one's end may be read.
inline bool StaysInPlace(const ByteProduct& s, const ByteBlock& block) {
  return s.t->w_type == Element::kI8 && s.x_tiles <= 2 && block.rows == kBytePanelRows &&
         (block.end - block.begin) % kByteChunk == 0;
}

inline void PlaceWeights(ByteProduct& s, const ByteBlock& block) {
  if (!StaysInPlace(s, block)) return FillPanel(s, block);
  s.a = reinterpret_cast<const int8_t*>(WeightAt(*s.t, block.output, block.begin));
  s.a_row = s.t->w_stride;
  s.a_tile = kTileSide * s.t->w_stride;
  s.a_step = kByteStep;
}

// Integer sums of the runs of chunk `chunk` of a block: [run][tile of W][tile of x][16, 16].
template <int64_t kM, int64_t kN, int64_t kRuns>
inline void MultiplyChunk(const ByteProduct& s, int64_t first, int64_t chunk, int64_t x_tile,
                          int32_t* to) {
  constexpr int64_t kParts = Max(2, kRuns);  // products
  constexpr int64_t kPartBytes = kByteChunk / kParts;
  for (int64_t part = 0; part < kParts; ++part) {
    const int64_t step = part * kPartBytes / kByteStep;
    const int64_t column = part * kPartBytes % kByteStep;
    if (part == 0 || kRuns > 1) ZeroSums<kM, kN>();
    AddStep<kM, kN, DotBytes>(
        [&](int64_t i) {
          return TileAt{s.a + i * s.a_tile + (2 * chunk + step) * s.a_step + column, s.a_row};
        },
        [&](int64_t j) {
          return TileAt{s.X(x_tile + j, first + chunk).codes[step] + column * kTileSide,
                        kTileRowBytes};
        });
    if (part + 1 < kParts && kRuns == 1) continue;
    StoreSums<kM, kN>([&](int64_t i, int64_t j) { return to + (i * kN + j) * kTileSums; });
    to += kM * kN * kTileSums;
  }
}

// total + x · Σ over the runs of a chunk: w(run) · sum(run).
template <bool kOneScale, int64_t kRuns, class Sum, class Scale>
inline Amx::Vec AddChunkOf(const Sum& sum, const Scale& w, Amx::Vec x, Amx::Vec total) {
  Amx::Vec scaled = kOneScale ? sum(0) : Amx::Mul(sum(0), w(0));
  for (int64_t run = 1; run < kRuns; ++run) scaled = Amx::Fma(sum(run), w(run), scaled);
  return Amx::Fma(scaled, x, total);
}

template <int64_t kRuns>
constexpr int64_t kBatchChunks = kRuns == 1 ? 2 : 1;

// Integer sums of chunks [chunk, +chunks) of a block that have not been added yet.
struct Batch {
  int64_t x_tile = 0, chunk = 0, chunks = 0;
  const int32_t* runs = nullptr;
};

// Adds tile (i, j) of kM × kN of a batch to its sums; lanes are rows of x.
template <bool kOneScale, int64_t kRuns, int64_t kTiles, int64_t kChunks>
inline void AddTile(ByteProduct& s, const ByteBlock& block, const Batch& batch, int64_t i,
                    int64_t j, const int32_t* runs) {
  const bool first = block.begin == 0 && batch.chunk == 0;
  const bool last = kOneScale && block.end == s.t->k && batch.chunk + kChunks == block.chunks();
  const float* const scale = s.scale + i * kTileSide;
  float* const y = s.Sums(block.output / kTileSide + i, batch.x_tile + j);
  Amx::Vec x[kChunks];
  for (int64_t c = 0; c < kChunks; ++c)
    x[c] = Amx::Load(s.X(batch.x_tile + j, block.begin / kByteChunk + batch.chunk + c).scale);
  for (int64_t row = 0; row < kTileSide; ++row) {
    Amx::Vec total = first ? Amx::Zero() : Amx::Load(y + row * kTileSide);
    for (int64_t c = 0; c < kChunks; ++c)
      total = AddChunkOf<kOneScale, kRuns>(
          [&](int64_t run) {
            return Avx512Vnni::ToFloat(Avx512Vnni::LoadBytes(
                runs + (c * kRuns + run) * kTiles * kTileSums + row * kTileSide));
          },
          [&](int64_t run) {
            return Amx::Set1(scale[((batch.chunk + c) * kRuns + run) * kBytePanelRows + row]);
          },
          x[c], total);
    if (last) total = Amx::Mul(total, Amx::Set1(scale[row]));
    Amx::Store(y + row * kTileSide, total);
  }
}

// Adds tiles [begin, end) of kM × kN of a batch.
template <bool kOneScale, int64_t kRuns, int64_t kM, int64_t kN>
inline void AddTiles(ByteProduct& s, const ByteBlock& block, const Batch& batch, int64_t begin,
                     int64_t end) {
  if (batch.chunks == 0) return;
  WithConstant<kBatchChunks<kRuns>>(batch.chunks, [&](auto chunks) {
    for (int64_t tile = begin; tile < end; ++tile)
      AddTile<kOneScale, kRuns, kM * kN, decltype(chunks)::value>(
          s, block, batch, tile / kN, tile % kN, batch.runs + tile * kTileSums);
  });
}

// All of a block's K for tiles [begin, end) of x, kN at a time. A batch is added while the next one
// is multiplied: vectors and tiles work side by side.
template <bool kOneScale, int64_t kRuns, int64_t kM, int64_t kN>
inline void MultiplyTiles(ByteProduct& s, const ByteBlock& block, int64_t begin, int64_t end,
                          int64_t lines) {
  constexpr int64_t kTiles = kM * kN;
  constexpr int64_t kBatch = kBatchChunks<kRuns>;  // chunks
  Batch before;
  int32_t* runs = s.runs[0];
  for (int64_t x_tile = begin; x_tile < end; x_tile += kN)
    for (int64_t chunk = 0; chunk < block.chunks(); chunk += kBatch) {
      s.ahead.Ask(lines);
      const int64_t chunks = Min(kBatch, block.chunks() - chunk);
      for (int64_t c = 0; c < chunks; ++c) {
        MultiplyChunk<kM, kN, kRuns>(s, block.begin / kByteChunk, chunk + c, x_tile,
                                     runs + c * kRuns * kTiles * kTileSums);
        AddTiles<kOneScale, kRuns, kM, kN>(s, block, before, c * kTiles / chunks,
                                           (c + 1) * kTiles / chunks);
      }
      before = {x_tile, chunk, chunks, runs};
      runs = runs == s.runs[0] ? s.runs[1] : s.runs[0];
    }
  AddTiles<kOneScale, kRuns, kM, kN>(s, block, before, 0, kTiles);
}

template <bool kOneScale, int64_t kRuns, int64_t kM>
inline void MultiplyPanel(ByteProduct& s, const ByteBlock& block) {
  constexpr int64_t kN = kRuns == 1 ? 2 : 1;
  constexpr int64_t kBatch = kBatchChunks<kRuns>;
  const int64_t batches = (block.chunks() + kBatch - 1) / kBatch;
  const int64_t lines = s.ahead.lines() / (batches * ((s.x_tiles + kN - 1) / kN)) + 1;
  const int64_t even = s.x_tiles / kN * kN;
  if (even > 0) MultiplyTiles<kOneScale, kRuns, kM, kN>(s, block, 0, even, lines);
  if (even < s.x_tiles) MultiplyTiles<kOneScale, kRuns, kM, 1>(s, block, even, s.x_tiles, lines);
}

// A single row of x: lanes of f32 are outputs.

// The block's columns of the row.
inline void PlaceRow(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  const auto* const x = static_cast<const int8_t*>(t.x);
  RowChunk* to = s.row;
  for (int64_t k = block.begin; k < block.end; k += kByteChunk, ++to) {
    Bytes chunk[2];
    LoadChunk(x + k, t.k - k, chunk);
    to->scale = t.x_scale[k / t.x_group];
    if (t.w_type == Element::kU4) {
      const Bytes even = Avx512Vnni::EvenBytes(chunk[0], chunk[1]);
      chunk[1] = Avx512Vnni::OddBytes(chunk[0], chunk[1]);
      chunk[0] = even;
      const Bytes factor = Avx512Vnni::SetInt(t.grid.zero == nullptr ? -8 : 1);
      Avx512Vnni::StoreBytes(
          to->start, Avx512Vnni::MulInts(Avx512Vnni::SumBytes(chunk[0], chunk[1]), factor));
    }
    for (int64_t i = 0; i < 2; ++i) Avx512Vnni::StoreBytes(to->codes[i], chunk[i]);
  }
}

// int8: sums of all chunks of a block and kM tiles of W on tiles of one column, [chunk][tile][16].
template <int64_t kM>
inline void MultiplyRowOnTiles(ByteProduct& s, int64_t chunks) {
  const int64_t lines = s.ahead.lines() / chunks + 1;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    s.ahead.Ask(lines);
    ZeroSums<kM, 1>();
    for (int64_t step = 0; step < 2; ++step)
      AddStep<kM, 1, DotBytes>(
          [&](int64_t i) {
            return TileAt{s.a + i * s.a_tile + (2 * chunk + step) * s.a_step, s.a_row};
          },
          [&](int64_t) { return TileAt{s.row[chunk].codes[step], 4}; });
    ForEachIndex<kM>([&](auto i) {
      Amx::StoreTile<i.value>(s.runs[0] + (chunk * kM + i.value) * kTileSide, 4);
    });
  }
}

// Sums of 16 outputs, tile i of the block.
template <bool kOneScale>
inline void StoreRowSums(const ByteProduct& s, const ByteBlock& block, int64_t i, Amx::Vec total,
                         float* y) {
  const bool last = kOneScale && block.end == s.t->k;
  Amx::Store(y, last ? Amx::Mul(total, Amx::Load(s.scale + i * kTileSide)) : total);
}

template <bool kOneScale, int64_t kM>
inline void AddRowOnTiles(ByteProduct& s, const ByteBlock& block) {
  MultiplyRowOnTiles<kM>(s, block.chunks());
  for (int64_t i = 0; i < kM; ++i) {
    float* const y = s.Sums(block.output / kTileSide + i, 0);
    Amx::Vec total = block.begin == 0 ? Amx::Zero() : Amx::Load(y);
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk)
      total = AddChunkOf<kOneScale, 1>(
          [&](int64_t) {
            return Avx512Vnni::ToFloat(
                Avx512Vnni::LoadBytes(s.runs[0] + (chunk * kM + i) * kTileSide));
          },
          [&](int64_t) { return Amx::Load(s.scale + chunk * kBytePanelRows + i * kTileSide); },
          Amx::Set1(s.row[chunk].scale), total);
    StoreRowSums<kOneScale>(s, block, i, total, y);
  }
}

// 4 bits: unpacking them for tiles would take longer than multiplying them. Sums of four runs of a
// chunk and 16 rows of W, lanes are rows.
template <bool kZeros, bool kWhole>
inline void MultiplyRowInLanes(const LinearTask& t, const RowChunk& x, int64_t output, int64_t k,
                               int64_t count, Bytes (&runs)[kChunkRuns]) {
  const Bytes even = Avx512Vnni::LoadBytes(x.codes[0]);
  const Bytes odd = Avx512Vnni::LoadBytes(x.codes[1]);
  const Bytes start = Avx512Vnni::LoadBytes(x.start);
  for (int64_t i = 0; i < kTileSide; i += 4) {
    Bytes sums[4];
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t n = Min(output + i + j, t.n - 1);
      const char* const w = WeightAt(t, n, k);
      const Bytes packed = kWhole ? Avx512Vnni::LoadBytes(w)
                                  : Avx512Vnni::LoadBytesPartial(w, (count + 1) / 2);
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

template <bool kOneScale, int64_t kRuns, bool kZeros>
inline void AddRowInLanes(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  const int64_t tiles = (block.rows + kTileSide - 1) / kTileSide;
  const int64_t lines = s.ahead.lines() / (tiles * block.chunks()) + 1;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t output = block.output + i * kTileSide;
    float* const y = s.Sums(output / kTileSide, 0);
    Amx::Vec total = block.begin == 0 ? Amx::Zero() : Amx::Load(y);
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
      s.ahead.Ask(lines);
      const int64_t k = block.begin + chunk * kByteChunk;
      const int64_t count = Min(kByteChunk, block.end - k);
      Bytes runs[kChunkRuns];
      if (count == kByteChunk)
        MultiplyRowInLanes<kZeros, true>(t, s.row[chunk], output, k, count, runs);
      else
        MultiplyRowInLanes<kZeros, false>(t, s.row[chunk], output, k, count, runs);
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
inline void MultiplyRow(ByteProduct& s, const ByteBlock& block) {
  PlaceRow(s, block);
  if (s.t->w_type == Element::kU4) {
    if (s.t->grid.zero == nullptr) return AddRowInLanes<kOneScale, kRuns, false>(s, block);
    return AddRowInLanes<kOneScale, kRuns, true>(s, block);
  }
  if constexpr (kRuns == 1) {
    PlaceWeights(s, block);
    if (block.rows > kTileSide)
      AddRowOnTiles<kOneScale, 2>(s, block);
    else
      AddRowOnTiles<kOneScale, 1>(s, block);
  }
}

inline LinesAhead LinesOf(const LinearTask& t, const ByteBlock& block) {
  const char* const first = WeightAt(t, block.output, block.begin);
  return {first, t.w_stride, WeightAt(t, block.output, block.end) - first, block.rows};
}

// Scales lie far apart: no processor asks for them by itself.
inline void AskForScales(const LinearTask& t, const ByteBlock& block) {
  const ScaleGrid& g = t.grid;
  const int64_t size = g.type == Element::kF32 ? 4 : 2;
  const int64_t column = GridColumn(g, block.begin);
  const int64_t bytes = (GridColumn(g, block.end - 1) + 1 - column) * size;
  const int64_t row = GridRow(g, block.output);
  LinesAhead lines{static_cast<const char*>(g.scale) + (row * g.stride + column) * size,
                   g.stride * size, bytes, GridRow(g, block.output + block.rows - 1) + 1 - row};
  lines.Ask(lines.lines());
}

template <bool kOneScale, int64_t kRuns>
inline void MultiplyBlock(ByteProduct& s, const ByteBlock& block, const ByteBlock& next) {
  const LinearTask& t = *s.t;
  s.ahead = LinesOf(t, next);
  if constexpr (kOneScale) {
    PrepareTileScales<kByteChunk>(t.grid, block.output, block.rows, block.begin, 1, s.scale);
  } else {
    if (next.rows > 0) AskForScales(t, next);
    PrepareTileScales<kByteChunk / kRuns>(t.grid, block.output, block.rows, block.begin,
                                          block.end - block.begin, s.scale);
  }
  if (s.x_rows == 1) return MultiplyRow<kOneScale, kRuns>(s, block);
  PlaceWeights(s, block);
  if (block.rows > kTileSide)
    MultiplyPanel<kOneScale, kRuns, 2>(s, block);
  else
    MultiplyPanel<kOneScale, kRuns, 1>(s, block);
}

// The blocks of a task: along K first for few rows of x, whose sums stay near; along the outputs
// first for many, so that x stays near.
struct ByteBlocks {
  int64_t n, k;
  bool along_k;

  int64_t across() const { return (k + kByteBlock - 1) / kByteBlock; }
  int64_t down() const { return (n + kBytePanelRows - 1) / kBytePanelRows; }
  ByteBlock At(int64_t i) const {
    const int64_t output = (along_k ? i / across() : i % down()) * kBytePanelRows;
    const int64_t begin = (along_k ? i % across() : i / down()) * kByteBlock;
    return {output, Min(kBytePanelRows, n - output), begin, Min(begin + kByteBlock, k)};
  }
};

template <bool kOneScale, int64_t kRuns>
inline void MultiplyBlocks(ByteProduct& s) {
  const LinearTask& t = *s.t;
  const ByteBlocks blocks{t.n, t.k, s.x_tiles <= 2};
  const int64_t count = blocks.across() * blocks.down();
  s.ahead = LinesOf(t, blocks.At(0));
  s.ahead.Ask(s.ahead.lines());
  for (int64_t i = 0; i < count; ++i) {
    const ByteBlock block = blocks.At(i);
    ByteBlock next = blocks.At(Min(i + 1, count - 1));
    if (i + 1 == count) next.rows = 0;
    MultiplyBlock<kOneScale, kRuns>(s, block, next);
  }
}

// Shapes of tiles that take `bytes` of each row of W and have `columns` columns of x.
inline TileShapes ByteShapes(int64_t bytes, int64_t columns) {
  TileShapes out;
  for (int i = 0; i < 4; ++i) out.row_bytes[i] = static_cast<uint16_t>(4 * columns);
  for (int i = 4; i < 6; ++i) out.row_bytes[i] = static_cast<uint16_t>(bytes);
  for (int i = 6; i < 8; ++i) {
    out.row_bytes[i] = static_cast<uint16_t>(4 * columns);
    out.rows[i] = static_cast<uint8_t>(bytes / 4);
  }
  return out;
}

inline void StoreOutputs(ByteProduct& s, int64_t output) {
  const LinearTask& t = *s.t;
  if (s.x_rows > 1) {
    for (int64_t row = 0; row < t.m; row += kTileSide)
      StoreTile(t, s.Sums(output / kTileSide, row / kTileSide), output, row);
    return;
  }
  const int64_t rest = t.n - output;
  const Amx::Vec sum = Amx::Load(s.Sums(output / kTileSide, 0));
  StoreNext<Amx>(t.y + output,
                 t.bias == nullptr ? sum : Amx::Add(sum, LoadNext<Amx>(t.bias + output, rest)),
                 rest);
}

// runs: of a chunk, 1 or 4.
inline void MultiplyWithRuns(ByteProduct& s, bool one_scale, int64_t runs) {
  const TileScope scope{
      ByteShapes(s.x_rows == 1 || runs == 1 ? kByteStep : kShortRun, s.x_rows)};
  if (one_scale)
    MultiplyBlocks<true, 1>(s);
  else if (runs == 1)
    MultiplyBlocks<false, 1>(s);
  else
    MultiplyBlocks<false, kChunkRuns>(s);
}

// Requires: x is i8, w is i8 or u4 with scales, groups as above; t.packed unless m is 1.
inline void LinearAmxInt8(const LinearTask& t) {
  ByteProduct s;
  s.t = &t;
  s.x_tiles = (t.m + kTileSide - 1) / kTileSide;
  s.x_rows = t.m == 1 ? 1 : kTileSide;
  s.chunks = (t.k + kByteChunk - 1) / kByteChunk;

  const ScaleGrid& g = t.grid;
  const bool one_scale = SegmentsOf(g, 0, t.k).count == 1;
  const bool long_runs = g.columns % kByteChunk == 0 && g.column_begin % kByteChunk == 0;
  MultiplyWithRuns(s, one_scale, one_scale || long_runs ? 1 : kChunkRuns);
  for (int64_t output = 0; output < t.n; output += kTileSide) StoreOutputs(s, output);
}

}  // namespace
}  // namespace latte::cpu
