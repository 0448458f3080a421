// sm80.mla_decode.bf16: absorbed decode with mma.sync; a block has kRows packed (token, head) rows
// of one sequence × one split of its keys. Runs on sm_80 and everything after it.
//
// Work      grid (splits, ⌈rows/kRows⌉, sequences), 256 threads
// SMEM      Q kRows×576 │ two key tiles kTile×576 │ P kRows×kTile │ row maxima and sums, in KiB:
//           64×64 225 (sm_90) · 64×32 149 (sm_80) · 16×64 165 (sm_90) · 16×32 92 (sm_86, 89, 120)
// Registers O kRows×512 f32 over 8 warps: 128 a thread at kRows = 64
//
//   8 warps = kRowGroups × kColGroups.      A warp has 16 rows, and of them
//     in S = Q·Kᵀ   kTile/kColGroups keys   → maxima meet in shared memory, P is shared
//     in O += P·V   512/kColGroups dims
//
// time →   wait tile i │ start tile i+1 │ S │ maxima ‖ P │ ‖ O     (‖ = a barrier)
//
// Order     m, l and O go tile by tile in index order: a row's bytes depend on its own keys alone.
// Tails     keys past the end are zero in shared memory (their memory may hold NaN) and −inf in S.
// Limits    C = 512, R = 64; any H, page size and query length.
#pragma once

#include "src/kernels/cuda/words/device.cuh"
#include "tests/cuda/subjects/mla_decode.h"

namespace latte::cuda {

template <int kRows_, int kTile_>
struct Sm80Tile {
  static constexpr int kRows = kRows_;  // 16, 32 or 64
  static constexpr int kTile = kTile_;  // keys
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRowGroups = kRows / 16;
  static constexpr int kColGroups = kWarps / kRowGroups;
  static constexpr int kKeys = kTile / kColGroups < 8 ? 8 : kTile / kColGroups;  // a warp's, of S
  static constexpr int kScoringGroups = kTile / kKeys;  // column groups that have keys
  static constexpr int kDims = kLatent / kColGroups;    // a warp's, of O

  static constexpr int kRowBytes = kWidth * 2;
  static constexpr int kTileBytes = kTile * kRowBytes;
  static constexpr int kKeysAt = kRows * kRowBytes;
  static constexpr int kProbsAt = kKeysAt + 2 * kTileBytes;
  static constexpr int kMaxAt = kProbsAt + kRows * kTile * 2;
  static constexpr int kSumAt = kMaxAt + kColGroups * kRows * 4;
  static constexpr int kSharedBytes = kSumAt + kColGroups * kRows * 4;
};

// Rows of 72 16-byte chunks; XOR with the row spreads the eight rows of an ldmatrix over all banks.
LATTE_DEVICE int WideOffset(int row, int chunk) {
  return row * (kWidth * 2) + ((chunk ^ (row & 7)) << 4);
}

// Rows of kTile/8 chunks; several rows share a 128-byte line when kTile < 64.
template <int kTile>
LATTE_DEVICE int ProbsOffset(int row, int chunk) {
  constexpr int kChunks = kTile / 8;
  return row * (kTile * 2) + ((chunk ^ (row / (8 / kChunks) & (kChunks - 1))) << 4);
}

// The address of k16 step `step`, given that of step 0: within a 128-byte line an XOR, between
// lines a constant. Kept as one base register and not as a table: ptxas would hoist the table and
// spill.
LATTE_DEVICE SharedAddr StepAt(SharedAddr first, int step) {
  return (first ^ (step % 4 << 5)) + step / 4 * 128;
}

// How many keys the sequence's token sees.
LATTE_DEVICE int VisibleKeys(const Sequence& seq, int token) {
  const int visible = seq.total_len - seq.query_len + token + 1;
  return visible < 0 ? 0 : visible;
}

// Rows [row_begin, row_begin + kRows) of Q rounded to bf16; rows past the end are zero.
template <class Tile>
LATTE_DEVICE void LoadQuery(const MlaDecodeParams& p, const Sequence& seq, int row_begin,
                            SharedAddr s_q) {
  const int rows = seq.query_len * p.heads;
  LATTE_NO_UNROLL
  for (int i = Thread(); i < Tile::kRows * 72; i += Tile::kThreads) {
    const int row = i / 72;
    const int chunk = i % 72;
    Words4 packed = {};
    if (row_begin + row < rows) {
      const int64_t r = int64_t{seq.query_start} * p.heads + row_begin + row;
      const float* g_q = chunk < 64 ? p.q_latent + r * kLatent + chunk * 8
                                    : p.q_rope + r * kRope + (chunk - 64) * 8;
      LATTE_UNROLL
      for (int j = 0; j < 4; ++j) {
        const Floats2 pair = LoadGlobal(reinterpret_cast<const Floats2*>(g_q) + j);
        packed.w[j] = PackBf16(pair.x, pair.y);
      }
    }
    StoreShared(s_q + WideOffset(row, chunk), packed);
  }
}

// Starts the copy of keys [begin, begin + kTile), zero from `end` on. Eight lanes take one row.
template <class Tile>
LATTE_DEVICE void StartTile(const MlaDecodeParams& p, const Sequence& seq, int begin, int end,
                            SharedAddr s_keys) {
  LATTE_NO_UNROLL
  for (int row = Thread() / 8; row < Tile::kTile; row += Tile::kThreads / 8) {
    const int key = begin + row;
    const bool valid = key < end;
    const uint16_t* g_row = p.pages;
    if (valid) {
      const int page = LoadGlobal(p.page_table + seq.table_start + key / p.page_tokens);
      g_row += (int64_t{page} * p.page_tokens + key % p.page_tokens) * kWidth;
    }
    LATTE_UNROLL
    for (int j = 0; j < 9; ++j) {
      const int chunk = Thread() % 8 + 8 * j;
      CopyAsync16(s_keys + WideOffset(row, chunk), g_row + chunk * 8, valid);
    }
  }
  CopyAsyncCommit();
}

// s[16 × kKeys] = Q·Kᵀ for the warp's rows and keys, unscaled.
template <class Tile>
LATTE_DEVICE void Scores(SharedAddr s_q, SharedAddr s_keys, int row0, int key0,
                         float (&s)[Tile::kKeys / 8][4]) {
  const int lane = Thread() % 32;
  LATTE_UNROLL
  for (int i = 0; i < Tile::kKeys / 2; ++i) s[i / 4][i % 4] = 0;
  const SharedAddr s_a = s_q + WideOffset(row0 + lane % 16, lane / 16);
  const SharedAddr s_b = s_keys + WideOffset(key0 + lane % 8, lane / 8);
  LATTE_UNROLL
  for (int k = 0; k < kWidth / 32; ++k) {
    uint32_t a[2][4];
    LoadMatrix4(StepAt(s_a, 2 * k), a[0]);
    LoadMatrix4(StepAt(s_a, 2 * k + 1), a[1]);
    LATTE_UNROLL
    for (int n = 0; n < Tile::kKeys / 8; ++n) {
      uint32_t b[4];  // 8 keys × 32 dims
      LoadMatrix4(StepAt(s_b, 2 * k) + 8 * n * Tile::kRowBytes, b);
      Mma16x8x16(s[n], a[0], b[0], b[1]);
      Mma16x8x16(s[n], a[1], b[2], b[3]);
    }
  }
}

// o[16 × kDims] += P·V for the warp's rows and dims.
template <class Tile>
LATTE_DEVICE void AddValues(SharedAddr s_probs, SharedAddr s_keys, int row0, int dim0,
                            float (&o)[Tile::kDims / 8][4]) {
  const int lane = Thread() % 32;
  const SharedAddr s_a = s_probs + ProbsOffset<Tile::kTile>(row0 + lane % 16, lane / 16);
  const SharedAddr s_b = s_keys + WideOffset(lane % 16, dim0 / 8 + lane / 16);
  LATTE_UNROLL
  for (int k = 0; k < Tile::kTile / 16; ++k) {
    uint32_t a[4];
    LoadMatrix4(StepAt(s_a, k), a);
    LATTE_UNROLL
    for (int n = 0; n < Tile::kDims / 16; ++n) {
      uint32_t b[4];  // 16 keys × 16 dims
      LoadMatrix4Transposed(StepAt(s_b, n) + 16 * k * Tile::kRowBytes, b);
      Mma16x8x16(o[2 * n], a, b[0], b[1]);
      Mma16x8x16(o[2 * n + 1], a, b[2], b[3]);
    }
  }
}

LATTE_DEVICE float QuadMax(float v) {
  v = Max(v, ShuffleXor(v, 1));
  return Max(v, ShuffleXor(v, 2));
}

LATTE_DEVICE float QuadSum(float v) {
  v += ShuffleXor(v, 1);
  return v + ShuffleXor(v, 2);
}

template <class Tile>
LATTE_DEVICE void MlaDecodeSm80(const MlaDecodeParams& p) {
  constexpr float kMinusInf = -__builtin_huge_valf();
  const int lane = Thread() % 32;
  const int row0 = 16 * (Thread() / 32 % Tile::kRowGroups);
  const int col_group = Thread() / 32 / Tile::kRowGroups;
  const int key0 = col_group * Tile::kKeys;
  const int dim0 = col_group * Tile::kDims;
  const bool scoring = col_group < Tile::kScoringGroups;

  const Sequence seq = LoadGlobal(p.sequences + BlockZ());
  const int rows = seq.query_len * p.heads;
  const int row_begin = BlockY() * Tile::kRows;
  if (row_begin >= rows) return;
  const int row_end = row_begin + Tile::kRows < rows ? row_begin + Tile::kRows : rows;
  const int begin = BlockX() * p.split_tokens;
  int end = VisibleKeys(seq, (row_end - 1) / p.heads);
  if (end > begin + p.split_tokens) end = begin + p.split_tokens;

  const SharedAddr s_q = SharedBase();
  const SharedAddr s_probs = s_q + Tile::kProbsAt;
  const SharedAddr s_max = s_q + Tile::kMaxAt;
  const SharedAddr s_sum = s_q + Tile::kSumAt;

  // A lane's two rows in every fragment, and where their keys end.
  int row[2], limit[2];
  LATTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    row[i] = row0 + lane / 4 + 8 * i;
    const int token = (row_begin + row[i]) / p.heads;
    limit[i] = row_begin + row[i] < rows ? VisibleKeys(seq, token) : 0;
    if (limit[i] > end) limit[i] = end;
  }

  float o[Tile::kDims / 8][4];
  LATTE_UNROLL
  for (int i = 0; i < Tile::kDims / 2; ++i) o[i / 4][i % 4] = 0;
  float m[2] = {kMinusInf, kMinusInf};  // log2 domain
  float l[2] = {0, 0};                  // of this lane's own columns

  if (begin < end) {
    StartTile<Tile>(p, seq, begin, end, s_q + Tile::kKeysAt);
    LoadQuery<Tile>(p, seq, row_begin, s_q);
  }
  LATTE_NO_UNROLL
  for (int tile = 0; begin + tile * Tile::kTile < end; ++tile) {
    const int tile_begin = begin + tile * Tile::kTile;
    const SharedAddr s_keys = s_q + Tile::kKeysAt + tile % 2 * Tile::kTileBytes;
    CopyAsyncWait<0>();
    SyncThreads();  // the tile is there for all, and all have done with the one before
    if (tile_begin + Tile::kTile < end)
      StartTile<Tile>(p, seq, tile_begin + Tile::kTile, end,
                      s_q + Tile::kKeysAt + (tile + 1) % 2 * Tile::kTileBytes);

    float s[Tile::kKeys / 8][4];
    if (scoring) {
      Scores<Tile>(s_q, s_keys, row0, key0, s);
      float top[2] = {kMinusInf, kMinusInf};
      LATTE_UNROLL
      for (int i = 0; i < Tile::kKeys / 2; ++i) {
        const int key = tile_begin + key0 + 8 * (i / 4) + 2 * (lane % 4) + i % 2;
        float& score = s[i / 4][i % 4];
        score = key < limit[i % 4 / 2] ? score * p.scale_log2 : kMinusInf;
        top[i % 4 / 2] = Max(top[i % 4 / 2], score);
      }
      LATTE_UNROLL
      for (int i = 0; i < 2; ++i) {
        top[i] = QuadMax(top[i]);
        if (lane % 4 == 0) StoreShared(s_max + (col_group * Tile::kRows + row[i]) * 4, top[i]);
      }
    }
    SyncThreads();  // maxima

    float shift[2];
    LATTE_UNROLL
    for (int i = 0; i < 2; ++i) {
      float next = m[i];
      LATTE_UNROLL
      for (int g = 0; g < Tile::kScoringGroups; ++g)
        next = Max(next, LoadSharedFloat(s_max + (g * Tile::kRows + row[i]) * 4));
      shift[i] = next == kMinusInf ? 0 : next;
      const float decay = Exp2(m[i] - shift[i]);
      m[i] = next;
      l[i] *= decay;
      LATTE_UNROLL
      for (int n = 0; n < Tile::kDims / 8; ++n) {
        o[n][2 * i] *= decay;
        o[n][2 * i + 1] *= decay;
      }
    }
    if (scoring) {
      LATTE_UNROLL
      for (int j = 0; j < Tile::kKeys / 4; ++j) {
        const int n = j / 2, i = j % 2;  // eight keys, row
        const float p0 = Exp2(s[n][2 * i] - shift[i]);
        const float p1 = Exp2(s[n][2 * i + 1] - shift[i]);
        l[i] += p0 + p1;
        StoreShared(s_probs + ProbsOffset<Tile::kTile>(row[i], key0 / 8 + n) + 4 * (lane % 4),
                    PackBf16(p0, p1));
      }
    }
    SyncThreads();  // P
    AddValues<Tile>(s_probs, s_keys, row0, dim0, o);
  }

  // The column groups' sums meet; then every lane stores its part of O.
  LATTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    l[i] = QuadSum(l[i]);
    if (lane % 4 == 0) StoreShared(s_sum + (col_group * Tile::kRows + row[i]) * 4, l[i]);
  }
  SyncThreads();
  LATTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (row_begin + row[i] >= rows) continue;
    float sum = 0;
    LATTE_UNROLL
    for (int g = 0; g < Tile::kScoringGroups; ++g)
      sum += LoadSharedFloat(s_sum + (g * Tile::kRows + row[i]) * 4);
    const int64_t r =
        BlockX() * p.total_rows + int64_t{seq.query_start} * p.heads + row_begin + row[i];
    if (col_group == 0 && lane % 4 == 0)
      StoreGlobal(p.lse + r, sum > 0 ? (m[i] + Log2(sum)) * 0.69314718056f : kMinusInf);
    if (begin >= end && p.splits > 1) continue;  // combine reads no more than the −inf
    const float inverse = sum > 0 ? 1 / sum : 0;
    float* g_o = p.o + r * kLatent + dim0 + 2 * (lane % 4);
    LATTE_UNROLL
    for (int n = 0; n < Tile::kDims / 8; ++n)
      StoreGlobal(reinterpret_cast<Floats2*>(g_o + 8 * n),
                  Floats2{o[n][2 * i] * inverse, o[n][2 * i + 1] * inverse});
  }
}

}  // namespace latte::cuda
