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
constexpr int64_t kBatchRuns = 4;

// Cache lines of rows, asked for along the rows.
struct LinesAhead {
  const char* p = nullptr;
  int64_t stride = 0, lines_of_row = 1, at = 0, end = 0;

  LinesAhead() = default;
  LinesAhead(const void* first, int64_t row_stride, int64_t row_bytes, int64_t rows)
      : p(static_cast<const char*>(first)),
        stride(row_stride),
        lines_of_row((row_bytes + 63) / 64),
        end(rows * lines_of_row) {}
  void Ask(int64_t lines) {
    for (const int64_t last = Min(at + lines, end); at < last; ++at)
      Amx::Prefetch(p + at / lines_of_row * stride + at % lines_of_row * 64);
  }
};

struct ByteProduct {
  alignas(64) float sums[kMaxTileActivations * kMaxTileOutputs];  // [tile of W][tile of x][16, 16]
  alignas(64) int8_t panel[2 * kByteBlock * kTileSide];           // [tile of W][step][16, 64]
  alignas(64) int32_t runs[kBatchRuns * 4 * kTileSums];
  alignas(64) float scale[kByteBlock / kShortRun * kBytePanelRows];  // [run][row]
  alignas(64) int8_t row[kByteBlock];                                // of a single row of x
  float row_scale[kByteBlockChunks];                                 // likewise
  const LinearTask* t;
  int64_t x_tiles, columns;  // rows of x in a tile: 16 or 1
  int64_t chunks;            // of all of K
  // The block's operand A, in the panel or in place: bytes from one row, tile and step to the next.
  const int8_t* a;
  int64_t a_row, a_tile, a_step;
  LinesAhead ahead;

  float* Sums(int64_t w_tile, int64_t x_tile) {
    return sums + (w_tile * x_tiles + x_tile) * kTileSide * columns;
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

// Lays a block of W out in the panel; rows behind the last are zero.
inline void FillPanel(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  const Bytes usual = Avx512Vnni::SetByte(8);
  for (int64_t i = 0; i < kBytePanelRows; ++i) {
    const bool there = i < block.rows;
    int8_t* to = s.panel + i / kTileSide * kByteBlock * kTileSide + i % kTileSide * kByteStep;
    for (int64_t k = block.begin; k < block.end; k += kByteChunk, to += 2 * kByteTile) {
      const char* const from = WeightAt(t, block.output + (there ? i : 0), k);
      const int64_t count = there ? block.end - k : 0;
      if (t.w_type == Element::kU4) {
        const Bytes zeros = t.grid.zero == nullptr || !there
                                ? usual
                                : Avx512Vnni::QuartersOf(
                                      ChunkZeros(t.grid, block.output + i, k, block.end));
        UnpackChunk(reinterpret_cast<const uint8_t*>(from), count, zeros, to, to + kByteTile);
      } else {
        Bytes chunk[2];
        LoadChunk(reinterpret_cast<const int8_t*>(from), count, chunk);
        Avx512Vnni::StoreBytes(to, chunk[0]);
        Avx512Vnni::StoreBytes(to + kByteTile, chunk[1]);
      }
    }
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

// The block's columns of a single row of x.
inline void PlaceRow(ByteProduct& s, const ByteBlock& block) {
  const LinearTask& t = *s.t;
  const auto* const x = static_cast<const int8_t*>(t.x);
  for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
    const int64_t k = block.begin + chunk * kByteChunk;
    Bytes bytes[2];
    LoadInOrder(x + k, t.k - k, t.w_type, bytes);
    Avx512Vnni::StoreBytes(s.row + chunk * kByteChunk, bytes[0]);
    Avx512Vnni::StoreBytes(s.row + chunk * kByteChunk + kByteStep, bytes[1]);
    s.row_scale[chunk] = t.x_scale[k / t.x_group];
  }
}

// Integer sums of the runs of chunk `chunk` of a block: [run][tile of W][tile of x][16, columns].
template <int64_t kM, int64_t kN, int64_t kRuns>
inline void MultiplyChunk(const ByteProduct& s, int64_t first, int64_t chunk, int64_t x_tile,
                          int32_t* to) {
  constexpr int64_t kSteps = 2;
  constexpr int64_t kParts = Max(kSteps, kRuns);  // products
  constexpr int64_t kPartBytes = kByteChunk / kParts;
  const int64_t line = 4 * s.columns;
  for (int64_t part = 0; part < kParts; ++part) {
    const int64_t step = part * kPartBytes / kByteStep;
    const int64_t column = part * kPartBytes % kByteStep;
    if (part == 0 || kRuns > 1) ZeroSums<kM, kN>();
    AddStep<kM, kN, DotBytes>(
        [&](int64_t i) {
          return TileAt{s.a + i * s.a_tile + (chunk * kSteps + step) * s.a_step + column, s.a_row};
        },
        [&](int64_t j) {
          const int8_t* const x = s.columns == 1 ? s.row + chunk * kByteChunk + step * kByteStep
                                                 : s.X(x_tile + j, first + chunk).codes[step];
          return TileAt{x + column / 4 * line, line};
        });
    if (part + 1 < kParts && kRuns == 1) continue;
    ForEachIndex<kM * kN>([&](auto i) {
      Amx::StoreTile<i.value>(to + i.value * kTileSide * s.columns, line);
    });
    to += kM * kN * kTileSide * s.columns;
  }
}

// total + Σ over chunks: x · Σ over their runs: w(run) · sums of the run, `apart` ints apart.
template <bool kOneScale, int64_t kRuns, int64_t kChunks, class Scale>
inline Amx::Vec AddRuns(const int32_t* sums, int64_t apart, const Amx::Vec (&x)[kChunks],
                        const Scale& w, Amx::Vec total) {
  const auto sum = [&](int64_t run) {
    return Avx512Vnni::ToFloat(Avx512Vnni::LoadBytes(sums + run * apart));
  };
  for (int64_t chunk = 0; chunk < kChunks; ++chunk) {
    const int64_t run = chunk * kRuns;
    Amx::Vec scaled = kOneScale ? sum(run) : Amx::Mul(sum(run), w(run));
    for (int64_t i = 1; i < kRuns; ++i) scaled = Amx::Fma(sum(run + i), w(run + i), scaled);
    total = Amx::Fma(scaled, x[chunk], total);
  }
  return total;
}

// Adds the runs of kChunks chunks from the chunk-th of a block on to the sums of kM × kN tiles.
template <bool kOneScale, int64_t kRuns, int64_t kM, int64_t kN, int64_t kChunks>
inline void AddBatch(ByteProduct& s, const ByteBlock& block, int64_t chunk, int64_t x_tile) {
  const int64_t w_tile = block.output / kTileSide;
  const int64_t apart = kM * kN * kTileSide * s.columns;
  const float* const scale = s.scale + chunk * kRuns * kBytePanelRows;
  Amx::Vec x[kChunks];
  if (s.columns == 1) {
    for (int64_t c = 0; c < kChunks; ++c) x[c] = Amx::Set1(s.row_scale[chunk + c]);
    for (int64_t i = 0; i < kM; ++i) {
      float* const y = s.Sums(w_tile + i, 0);
      const auto w = [&](int64_t run) {
        return Amx::Load(scale + run * kBytePanelRows + i * kTileSide);
      };
      Amx::Store(y, AddRuns<kOneScale, kRuns, kChunks>(s.runs + i * kTileSide, apart, x, w,
                                                       Amx::Load(y)));
    }
    return;
  }
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t c = 0; c < kChunks; ++c)
      x[c] = Amx::Load(s.X(x_tile + j, block.begin / kByteChunk + chunk + c).scale);
    for (int64_t i = 0; i < kM; ++i) {
      float* const y = s.Sums(w_tile + i, x_tile + j);
      const int32_t* const runs = s.runs + (i * kN + j) * kTileSums;
      for (int64_t row = 0; row < kTileSide; ++row) {
        const auto w = [&](int64_t run) {
          return Amx::Set1(scale[run * kBytePanelRows + i * kTileSide + row]);
        };
        float* const to = y + row * kTileSide;
        Amx::Store(to, AddRuns<kOneScale, kRuns, kChunks>(runs + row * kTileSide, apart, x, w,
                                                          Amx::Load(to)));
      }
    }
  }
}

template <bool kOneScale, int64_t kRuns, int64_t kM>
inline void MultiplyPanel(ByteProduct& s, const ByteBlock& block) {
  constexpr int64_t kBatch = kBatchRuns / kRuns;  // chunks
  const int64_t batches = (block.chunks() + kBatch - 1) / kBatch;
  const int64_t lines = s.ahead.end / (batches * ((s.x_tiles + 1) / 2)) + 1;
  ForEachRun<2>(s.x_tiles, [&](int64_t x_tile, auto tiles) {
    constexpr int64_t kN = decltype(tiles)::value;
    for (int64_t chunk = 0; chunk < block.chunks(); chunk += kBatch) {
      s.ahead.Ask(lines);
      WithConstant<kBatch>(Min(kBatch, block.chunks() - chunk), [&](auto count) {
        constexpr int64_t kChunks = decltype(count)::value;
        for (int64_t c = 0; c < kChunks; ++c)
          MultiplyChunk<kM, kN, kRuns>(s, block.begin / kByteChunk, chunk + c, x_tile,
                                       s.runs + c * kRuns * kM * kN * kTileSide * s.columns);
        AddBatch<kOneScale, kRuns, kM, kN, kChunks>(s, block, chunk, x_tile);
      });
    }
  });
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
  lines.Ask(lines.end);
}

template <bool kOneScale, int64_t kRuns>
inline void MultiplyBlock(ByteProduct& s, const ByteBlock& block, const ByteBlock& next) {
  const LinearTask& t = *s.t;
  s.ahead = LinesOf(t, next);
  if constexpr (!kOneScale) {
    if (next.rows > 0) AskForScales(t, next);
    PrepareTileScales<kByteChunk / kRuns>(t.grid, block.output, block.rows, block.begin,
                                          block.end - block.begin, s.scale);
  }
  PlaceWeights(s, block);
  if (s.columns == 1) PlaceRow(s, block);
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
  s.ahead.Ask(s.ahead.end);
  for (int64_t i = 0; i < count; ++i) {
    const ByteBlock block = blocks.At(i);
    ByteBlock next = blocks.At(Min(i + 1, count - 1));
    if (i + 1 == count) next.rows = 0;
    MultiplyBlock<kOneScale, kRuns>(s, block, next);
  }
}

// Shapes of tiles that take `bytes` of each row of W and `columns` rows of x.
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

// Multiplies the finished sums of 16 outputs by their only scale.
inline void ScaleSums(ByteProduct& s, int64_t output) {
  const LinearTask& t = *s.t;
  const ScaleGrid& g = t.grid;
  float* const sums = s.Sums(output / kTileSide, 0);
  WithType(g.scale, g.type, [&](const auto* stored) {
    for (int64_t i = 0; i < Min(kTileSide, t.n - output); ++i) {
      const float scale = WideOf(stored + GridRow(g, output + i) * g.stride + GridColumn(g, 0));
      if (s.columns == 1) {
        sums[i] *= scale;
        continue;
      }
      for (int64_t x_tile = 0; x_tile < s.x_tiles; ++x_tile) {
        float* const to = sums + x_tile * kTileSums + i * kTileSide;
        Amx::Store(to, Amx::Mul(Amx::Load(to), Amx::Set1(scale)));
      }
    }
  });
}

inline void StoreOutputs(ByteProduct& s, int64_t output) {
  const LinearTask& t = *s.t;
  if (s.columns == kTileSide) {
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

// Requires: x is i8, w is i8 or u4 with scales, groups as above; t.packed unless m is 1.
inline void LinearAmxInt8(const LinearTask& t) {
  ByteProduct s;
  s.t = &t;
  s.x_tiles = (t.m + kTileSide - 1) / kTileSide;
  s.columns = t.m == 1 ? 1 : kTileSide;
  s.chunks = (t.k + kByteChunk - 1) / kByteChunk;
  const int64_t w_tiles = (t.n + kTileSide - 1) / kTileSide;
  for (float* at = s.sums; at < s.Sums(w_tiles, 0); at += kTileSide) Amx::Store(at, Amx::Zero());

  const ScaleGrid& g = t.grid;
  const bool one_scale = SegmentsOf(g, 0, t.k).count == 1;
  const bool long_runs = g.columns % kByteChunk == 0 && g.column_begin % kByteChunk == 0;
  {
    const TileScope scope{
        ByteShapes(one_scale || long_runs ? kByteStep : kShortRun, s.columns)};
    if (one_scale)
      MultiplyBlocks<true, 1>(s);
    else if (long_runs)
      MultiplyBlocks<false, 1>(s);
    else
      MultiplyBlocks<false, kChunkRuns>(s);
  }
  for (int64_t output = 0; output < t.n; output += kTileSide) {
    if (one_scale) ScaleSums(s, output);
    StoreOutputs(s, output);
  }
}

}  // namespace
}  // namespace latte::cpu
