// s8×s8 and s8×u4 micro-kernel 16×M×128, vpdpbusd, M ≤ 8, for machines with AMX.
//
// Packing   A in chunks of 128 columns with compensation (s8_chunk-inl.h). B is read in place: a
//           tile load would wait for one cache line after the other, and 4-bit B would need
//           packing.
// Blocking  Blocks of 32 rows of B; two registers hold the totals of 16 rows each. Four rows of B
//           stay in registers while all rows of A pass. If rows are 1 to 3 KiB long, consecutive
//           rows alternate between the two registers: the 16 rows of a register are then in 16
//           memory pages, each with its own hardware prefetch stream.
// Prefetch  Each row prefetches its own lines four chunks ahead and, at its end, the row that will
//           replace it. Rows shorter than 1 KiB: by blocks, as gemm_amx_s8-inl.h.
// Epilogue  Scales of A and B per chunk; the bias last.
// Order     that of int8_scales-inl.h.
// Limits    as gemm_amx_s8-inl.h.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/gemm/amx_block_s8-inl.h"

namespace latte::cpu {
namespace {

// Packs the columns of a block of one row of A.
inline void PackARow(AmxS8Scratch& s, const BBlock& block, int64_t x_row) {
  const GemmTask& t = *s.t;
  const auto* const x = static_cast<const int8_t*>(t.x) + x_row * t.x_stride;
  const float* const scale = t.x_scale + x_row * t.x_scale_stride;
  for (int64_t k = block.begin; k < block.end; k += kChunkK) {
    AVectorChunk* const to = &s.Row((k - block.begin) / kChunkK, x_row);
    Bytes chunk[2];
    LoadChunk(x + k, t.k - k, chunk);
    to->scale = scale[k / t.x_group];
    int32_t bias = 128;  // makes int8 weights unsigned
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

constexpr int64_t kPrefetchChunks = 4;

// Whether each row prefetches its own lines.
inline bool PrefetchesByRow(const GemmTask& t) { return 4 * t.w_stride >= kPage; }
// Whether the rows of a block alternate between its two tiles.
inline bool AlternatesRows(const GemmTask& t, int64_t rows) {
  return rows == kBPanelN && PrefetchesByRow(t) && 4 * t.w_stride < 3 * kPage;
}
// Row of the block of each lane of both tiles, and the inverse.
struct RowOrder {
  alignas(64) int32_t row[2][kTileSide];
  alignas(64) int32_t lane[2][kTileSide];
};
constexpr RowOrder MakeRowOrder(bool alternates) {
  RowOrder out = {};
  for (int32_t i = 0; i < kBPanelN; ++i) {
    const int32_t row = alternates ? i % kTileSide * 2 + i / kTileSide : i;
    out.row[i / kTileSide][i % kTileSide] = row;
    out.lane[row / kTileSide][row % kTileSide] = i;
  }
  return out;
}
inline constexpr RowOrder kRowOrders[2] = {MakeRowOrder(false), MakeRowOrder(true)};
inline const RowOrder& OrderOf(const GemmTask& t, int64_t rows) {
  return kRowOrders[AlternatesRows(t, rows) ? 1 : 0];
}

// The rows of a tile of a block, from its first column. Missing rows repeat the last one.
struct BRows16 {
  const char* row[kTileSide];

  void Find(const GemmTask& t, const BBlock& block, int64_t tile) {
    const RowOrder& order = OrderOf(t, block.rows);
    const char* const first = WeightAt(t, block.output, block.begin);
    for (int64_t i = 0; i < kTileSide; ++i)
      row[i] = first + Min(order.row[tile][i], block.rows - 1) * t.w_stride;
  }
};

// A chunk of 16 rows of B; the last one may be partial.
struct BRows16Chunk {
  const char* const* row;    // 16 pointers, in memory: too many for registers
  const int32_t* number;     // of each row in the block
  int64_t output;            // of the block
  int64_t k, count;          // columns
  int64_t at;                // byte of column k in a row
  const char* const* ahead;  // rows to prefetch
  int64_t ahead_at;          // and the byte in them

  const char* Row(int64_t i) const { return row[i] + at; }
};

// Row i of a chunk as two registers of unsigned bytes: int8 values + 128; 4-bit values of even and
// of odd columns.
template <Element kType, bool kByRow, bool kWhole>
inline void LoadCodes(const BRows16Chunk& c, int64_t i, Bytes (&to)[2]) {
  const char* const w = c.Row(i);
  if constexpr (kByRow)
    for (int64_t line = 0; line < kChunkK / ValuesOf(kType); line += 64)
      PrefetchL1(c.ahead[i], c.ahead_at + line);
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

// Integer sums of the four groups of 32 columns of a chunk, 16 rows of B × all rows of A. Four rows
// of B stay in registers while the rows of A pass.
template <Element kType, bool kByRow, bool kZeros, bool kWhole>
inline void DotRows16(const GemmTask& t, const BRows16Chunk& c, const AVectorChunk* x,
                      GemvGroupSums* groups) {
  for (int64_t i = 0; i < kTileSide; i += 4) {
    Bytes codes[4][2], zeros[4];
    for (int64_t j = 0; j < 4; ++j) {
      LoadCodes<kType, kByRow, kWhole>(c, i + j, codes[j]);
      if constexpr (kZeros)
        zeros[j] = Avx512Vnni::MinusQuartersOf(
            ChunkZeros(t.grid, Min(c.output + c.number[i + j], t.n - 1), c.k, c.k + c.count));
    }
    for (int64_t x_row = 0; x_row < t.m; ++x_row) {
      const AVectorChunk& row = x[x_row];
      const Bytes start = Avx512Vnni::LoadBytes(row.start);
      Bytes sums[4];
      for (int64_t j = 0; j < 4; ++j) {
        sums[j] = start;
        if constexpr (kZeros) sums[j] = Avx512Vnni::MulInts(start, zeros[j]);
        for (int64_t half = 0; half < 2; ++half)
          sums[j] =
              Avx512Vnni::DotBytes(sums[j], codes[j][half], Avx512Vnni::LoadBytes(row.codes[half]));
      }
      Avx512Vnni::StoreBytes(groups[x_row].sums[i / 4], Avx512Vnni::SumQuads(sums));
    }
  }
}

// Scales of the lanes of a tile; kByRow: picked from the rows of the block.
template <bool kByRow>
inline Amx::Vec GemvScales(const float* scale, const int32_t* number) {
  if constexpr (!kByRow) return Amx::Load(scale);
  return Amx::Pick(Amx::Load(scale), Amx::Load(scale + kTileSide), Amx::LoadWords(number));
}

// total + the scaled sums of a chunk and one row of A; lanes are rows of B.
template <bool kOneScale, int64_t kGroups, bool kByRow>
inline Amx::Vec AddGemvGroups(const GemvGroupSums& from, const float* scale, const int32_t* number,
                              float x, Amx::Vec total) {
  Bytes groups[kChunkGroups];
  for (int64_t group = 0; group < kChunkGroups; ++group)
    groups[group] = Avx512Vnni::LoadBytes(from.sums[group]);
  Avx512Vnni::TransposeInts128(groups);
  if constexpr (kGroups == 1)
    groups[0] = Avx512Vnni::AddInts(Avx512Vnni::AddInts(groups[0], groups[1]),
                                    Avx512Vnni::AddInts(groups[2], groups[3]));
  return AddScaledChunk<Avx512Vnni, kOneScale, kGroups>(
      [&](int64_t group) { return Avx512Vnni::ToFloat(groups[group]); },
      [&](int64_t group) { return GemvScales<kByRow>(scale + group * kBPanelN, number); },
      Amx::Set1(x), total);
}

// Adds a chunk to the totals of a tile; `ends`: it is the last chunk of K.
template <bool kOneScale, int64_t kGroups, bool kByRow>
inline void AddGemvChunk(const AmxS8Scratch& s, const BRows16Chunk& c, const AVectorChunk* x,
                         const GemvGroupSums* groups, const float* tile_scale, int64_t first_group,
                         bool ends, float* y) {
  const float* const scale = tile_scale + first_group * kBPanelN;
  for (int64_t row = 0; row < s.t->m; ++row) {
    float* const to = y + row * kTileSide;
    Amx::Vec total = c.k == 0 ? Amx::Zero() : Amx::Load(to);
    total = AddGemvGroups<kOneScale, kGroups, kByRow>(groups[row], scale, c.number, x[row].scale,
                                                      total);
    if (kOneScale && ends) total = Amx::Mul(total, GemvScales<kByRow>(tile_scale, c.number));
    Amx::Store(to, total);
  }
}

// Rows that prefetch their own lines.
template <Element kType, bool kOneScale, int64_t kGroups, bool kZeros>
inline void GemvLongRows(AmxS8Scratch& s, const BBlock& block) {
  constexpr int64_t kChunkBytes = kChunkK / ValuesOf(kType);
  const GemmTask& t = *s.t;
  const int64_t tiles = (block.rows + kTileSide - 1) / kTileSide;
  const RowOrder& order = OrderOf(t, block.rows);
  GemvGroupSums groups[kMaxAmxS8GemvM];
  BRows16 rows, next;
  rows.Find(t, block, 0);
  // One scale per row is a line or two: prefetched at once.
  Spread(s.ahead, kOneScale ? 1 : s.prefetch_chunks * tiles);
  if (kOneScale) PrefetchNext(s.ahead);
  for (int64_t i = 0; i < tiles; ++i) {
    float* const y = s.Sums(block.output / kTileSide + i, 0);
    if (i + 1 < tiles)
      next.Find(t, block, i + 1);
    else if (s.next_task != nullptr)
      next.Find(*s.next_task, s.next_block, 0);
    else
      next = rows;  // nothing follows: prefetches lines that are cached already
    BRows16Chunk c = {rows.row, order.row[i], block.output, 0, 0, 0, rows.row, 0};
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
      if (!kOneScale) PrefetchNext(s.ahead);
      c.k = block.begin + chunk * kChunkK;
      c.count = Min(kChunkK, block.end - c.k);
      c.at = chunk * kChunkBytes;
      const int64_t ahead = chunk + kPrefetchChunks;
      const bool next_row = ahead >= block.chunks();
      if (next_row) c.ahead = next.row;
      c.ahead_at = (ahead - (next_row ? block.chunks() : 0)) * kChunkBytes;
      const AVectorChunk* const x = &s.Row(chunk, 0);
      if (c.count == kChunkK)
        DotRows16<kType, true, kZeros, true>(t, c, x, groups);
      else
        DotRows16<kType, true, kZeros, false>(t, c, x, groups);
      AddGemvChunk<kOneScale, kGroups, true>(s, c, x, groups, s.scale, chunk * kGroups,
                                             c.k + c.count == t.k, y);
    }
    rows = next;
  }
}

// Short rows, prefetched by blocks as for tiles.
template <Element kType, bool kOneScale, int64_t kGroups, bool kZeros>
inline void GemvShortRows(AmxS8Scratch& s, const BBlock& block) {
  const GemmTask& t = *s.t;
  const int64_t tiles = (block.rows + kTileSide - 1) / kTileSide;
  GemvGroupSums groups[kMaxAmxS8GemvM];
  BRows16 rows;
  Spread(s.ahead, s.prefetch_chunks * tiles);
  for (int64_t i = 0; i < tiles; ++i) {
    float* const y = s.Sums(block.output / kTileSide + i, 0);
    const RowOrder& order = OrderOf(t, block.rows);
    rows.Find(t, block, i);
    BRows16Chunk c = {rows.row, order.row[i], block.output, 0, 0, 0, nullptr, 0};
    for (int64_t chunk = 0; chunk < block.chunks(); ++chunk) {
      PrefetchNext(s.ahead);
      c.k = block.begin + chunk * kChunkK;
      c.count = Min(kChunkK, block.end - c.k);
      c.at = chunk * (kChunkK / ValuesOf(kType));
      const AVectorChunk* const x = &s.Row(chunk, 0);
      if (c.count == kChunkK)
        DotRows16<kType, false, kZeros, true>(t, c, x, groups);
      else
        DotRows16<kType, false, kZeros, false>(t, c, x, groups);
      AddGemvChunk<kOneScale, kGroups, false>(s, c, x, groups, s.scale + i * kTileSide,
                                              chunk * kGroups, c.k + c.count == t.k, y);
    }
  }
}

// Totals of 16 rows of B from `output` and one row of A.
inline Amx::Vec GemvSums(AmxS8Scratch& s, int64_t output, int64_t row) {
  const int64_t first = output / kBPanelN * kBPanelN;
  const RowOrder& order = OrderOf(*s.t, Min(kBPanelN, s.t->n - first));
  const float* const low = s.Sums(first / kTileSide, row);
  const float* const high = s.Sums(first / kTileSide + 1, row);
  return Amx::Pick(Amx::Load(low), Amx::Load(high),
                   Amx::LoadWords(order.lane[(output - first) / kTileSide]));
}

template <Element kType, bool kOneScale, int64_t kGroups, bool kZeros>
inline void GemvBlockOf(AmxS8Scratch& s, const BBlock& block) {
  if (PrefetchesByRow(*s.t))
    GemvLongRows<kType, kOneScale, kGroups, kZeros>(s, block);
  else
    GemvShortRows<kType, kOneScale, kGroups, kZeros>(s, block);
}

template <bool kOneScale, int64_t kGroups>
inline void GemvBlock(AmxS8Scratch& s, const BBlock& block) {
  for (int64_t x_row = 0; x_row < s.x_tiles; ++x_row) PackARow(s, block, x_row);
  if (s.t->w_type == Element::kI8)
    GemvBlockOf<Element::kI8, kOneScale, kGroups, false>(s, block);
  else if (s.t->grid.zero == nullptr)
    GemvBlockOf<Element::kU4, kOneScale, kGroups, false>(s, block);
  else
    GemvBlockOf<Element::kU4, kOneScale, kGroups, true>(s, block);
}

}  // namespace
}  // namespace latte::cpu
