// sm90.mla_decode.bf16: absorbed decode with TMA and wgmma; a block has 64 packed (token, head)
// rows of one sequence × one split of its keys.
//
// Work      grid (splits, ⌈rows/64⌉, sequences), 384 threads
// SMEM      Q 64×576 │ two key tiles 64×576 │ P 64×64 │ decay, sums │ mbarriers = 225 KiB ≤ 227
//           everything in sub-tiles of 64 rows × 128 bytes (8192 bytes) with the 128-byte swizzle
// Registers O 64×512 f32 over two warpgroups: 128 a thread; they take 240, the producer keeps 24
//
// time →   producer   K1 ▒▒▒▒▒▒▒▒▒▒▒▒▒│ K2 ▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//          scorer     S0 = Q·K0ᵀ │ P0 │ O_left += P0·V0 │ S1 …        dims 0…255, P from registers
//          follower   …             │ O_right += P0·V0      │ …       dims 256…511, P from shared
//
// Order     m, l and O go tile by tile in index order: a row's bytes depend on its own keys alone.
// Tails     TMA brings whole boxes, so the scorer zeroes keys past the end before anything reads
// them. Limits    C = 512, R = 64, P % 16 == 0; any H and query length.
#pragma once

#include "src/kernels/cuda/words/device.cuh"
#include "tests/cuda/subjects/mla_decode.h"
#include "tests/cuda/subjects/mla_decode_sm80.cuh"

namespace latte::cuda {

struct Sm90 {
  static constexpr int kRows = 64;
  static constexpr int kTile = 64;
  static constexpr int kThreads = 384;
  static constexpr int kSlab = 64 * 128;      // bytes of a sub-tile: 64 rows × 64 dims
  static constexpr int kSlabs = kWidth / 64;  // 9; the last is the rope part
  static constexpr int kTileBytes = kSlabs * kSlab;
  static constexpr int kKeysAt = kTileBytes;  // after Q
  static constexpr int kProbsAt = kKeysAt + 2 * kTileBytes;
  static constexpr int kDecayAt = kProbsAt + kSlab;
  static constexpr int kSumAt = kDecayAt + 64 * 4;
  static constexpr int kFullAt = kSumAt + 64 * 4;  // [2]
  static constexpr int kEmptyAt = kFullAt + 16;    // [2]
  static constexpr int kSharedBytes = kEmptyAt + 16;
};

// Named barriers; 0 is SyncThreads.
constexpr int kQueryReady = 1;  // both warpgroups wait
constexpr int kScorer = 2;      // within the scorer
constexpr int kProbsReady = 3;  // scorer arrives, follower waits
constexpr int kProbsFree = 4;   // follower arrives, scorer waits
constexpr int kSumReady = 5;    // scorer arrives, follower waits

// Byte offset of 16-byte chunk `chunk` (0…71) of a row in sub-tiles.
LATTE_DEVICE int SlabOffset(int row, int chunk) {
  return chunk / 8 * Sm90::kSlab + row * 128 + ((chunk % 8 ^ row % 8) << 4);
}

// What a block has to do.
struct Sm90Work {
  Sequence seq;
  int row_begin, rows;  // packed rows of the sequence
  int begin, end;       // keys
};

// Q rounded to bf16, by both warpgroups; rows past the end are zero.
LATTE_DEVICE void LoadQuerySlabs(const MlaDecodeParams& p, const Sm90Work& w, SharedAddr s_q) {
  LATTE_NO_UNROLL
  for (int i = Thread(); i < Sm90::kRows * 72; i += 256) {
    const int row = i / 72;
    const int chunk = i % 72;
    Words4 packed = {};
    if (w.row_begin + row < w.rows) {
      const int64_t r = int64_t{w.seq.query_start} * p.heads + w.row_begin + row;
      const float* g_q = chunk < 64 ? p.q_latent + r * kLatent + chunk * 8
                                    : p.q_rope + r * kRope + (chunk - 64) * 8;
      LATTE_UNROLL
      for (int j = 0; j < 4; ++j) {
        const Floats2 pair = LoadGlobal(reinterpret_cast<const Floats2*>(g_q) + j);
        packed.w[j] = PackBf16(pair.x, pair.y);
      }
    }
    StoreShared(s_q + SlabOffset(row, chunk), packed);
  }
}

// The producer lane: brings tile after tile, box by box; the map's box is 64 dims × box_keys keys.
LATTE_DEVICE void Produce(const MlaDecodeSm90Params& params, const Sm90Work& w, SharedAddr s_base) {
  const MlaDecodeParams& p = params.decode;
  const int box_keys = params.box_keys;
  LATTE_NO_UNROLL
  for (int tile = 0; w.begin + tile * Sm90::kTile < w.end; ++tile) {
    const int stage = tile % 2;
    const SharedAddr s_full = s_base + Sm90::kFullAt + 8 * stage;
    const SharedAddr s_keys = s_base + Sm90::kKeysAt + stage * Sm90::kTileBytes;
    const int tile_begin = w.begin + tile * Sm90::kTile;
    const int left = w.end - tile_begin < Sm90::kTile ? w.end - tile_begin : Sm90::kTile;
    const int boxes = (left + box_keys - 1) / box_keys;
    MbarrierWait(s_base + Sm90::kEmptyAt + 8 * stage, tile / 2 % 2 ^ 1);
    MbarrierArriveExpect(s_full, boxes * box_keys * 128 * Sm90::kSlabs);
    LATTE_NO_UNROLL
    for (int box = 0; box < boxes; ++box) {
      const int key = tile_begin + box * box_keys;
      const int page = LoadGlobal(p.page_table + w.seq.table_start + key / p.page_tokens);
      LATTE_NO_UNROLL
      for (int slab = 0; slab < Sm90::kSlabs; ++slab)
        TmaLoad(s_keys + slab * Sm90::kSlab + box * box_keys * 128, &params.pages, s_full,
                64 * slab, key % p.page_tokens, page);
    }
  }
}

// Zero in keys [valid, 64) of a tile, by the scorer.
LATTE_DEVICE void ZeroTail(SharedAddr s_keys, int valid) {
  LATTE_NO_UNROLL
  for (int i = Thread() + valid * 72; i < Sm90::kTile * 72; i += 128)
    StoreShared(s_keys + SlabOffset(i / 72, i % 72), Words4{});
  FenceProxyAsync();
  BarrierSync(kScorer, 128);
}

// s[64×64] = Q·Kᵀ, unscaled. Starts it; the caller waits.
LATTE_DEVICE void StartScores(SharedAddr s_q, SharedAddr s_keys, float (&s)[32]) {
  const SharedAddr a = Launder(s_q);
  const SharedAddr b = Launder(s_keys);
  WgmmaFence();
  LATTE_UNROLL
  for (int k = 0; k < kWidth / 16; ++k) {
    const int at = k / 4 * Sm90::kSlab + k % 4 * 32;
    if (k == 0)
      Wgmma64x64<false>(s, MatrixDescriptor(a, 16, 1024), MatrixDescriptor(b, 16, 1024));
    else
      Wgmma64x64<true>(s, MatrixDescriptor(a + at, 16, 1024), MatrixDescriptor(b + at, 16, 1024));
  }
  WgmmaCommit();
}

// The descriptor of V's keys 16k…16k+15 and the 256 dims from sub-tile `slab` on.
LATTE_DEVICE uint64_t ValueDescriptor(SharedAddr s_keys, int slab, int k) {
  return MatrixDescriptor(s_keys + slab * Sm90::kSlab + k * 2048, Sm90::kSlab, 1024);
}

// A lane's two rows: their place in the block and where their keys end.
struct Sm90Rows {
  int row[2], limit[2];
};

LATTE_DEVICE Sm90Rows RowsOf(const MlaDecodeParams& p, const Sm90Work& w) {
  Sm90Rows out;
  LATTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    out.row[i] = Thread() % 128 / 32 * 16 + Thread() % 32 / 4 + 8 * i;
    const int r = w.row_begin + out.row[i];
    out.limit[i] = r < w.rows ? VisibleKeys(w.seq, r / p.heads) : 0;
    if (out.limit[i] > w.end) out.limit[i] = w.end;
  }
  return out;
}

// Stores the lane's part of O, dims [dim0, dim0 + 256), times inverse.
LATTE_DEVICE void StoreOutput(const MlaDecodeParams& p, const Sm90Work& w, const Sm90Rows& rows,
                              int dim0, const float (&o)[128], const float (&inverse)[2]) {
  LATTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (w.row_begin + rows.row[i] >= w.rows || (w.begin >= w.end && p.splits > 1)) continue;
    const int64_t r =
        BlockX() * p.total_rows + int64_t{w.seq.query_start} * p.heads + w.row_begin + rows.row[i];
    float* g_o = p.o + r * kLatent + dim0 + 2 * (Thread() % 4);
    LATTE_UNROLL
    for (int n = 0; n < 32; ++n)
      StoreGlobal(reinterpret_cast<Floats2*>(g_o + 8 * n),
                  Floats2{o[4 * n + 2 * i] * inverse[i], o[4 * n + 2 * i + 1] * inverse[i]});
  }
}

// Says that this warp has done with a stage.
LATTE_DEVICE void FreeStage(SharedAddr s_base, int stage) {
  SyncWarp();
  if (Thread() % 32 == 0) MbarrierArrive(s_base + Sm90::kEmptyAt + 8 * stage);
}

// Warpgroup 0: scores, probabilities and the left half of O.
LATTE_DEVICE void Score(const MlaDecodeParams& p, const Sm90Work& w, SharedAddr s_base) {
  constexpr float kMinusInf = -__builtin_huge_valf();
  const Sm90Rows rows = RowsOf(p, w);
  const SharedAddr s_probs = s_base + Sm90::kProbsAt;
  float o[128];
  LATTE_UNROLL
  for (int i = 0; i < 128; ++i) o[i] = 0;
  float m[2] = {kMinusInf, kMinusInf};
  float l[2] = {0, 0};

  LATTE_NO_UNROLL
  for (int tile = 0; w.begin + tile * Sm90::kTile < w.end; ++tile) {
    const int tile_begin = w.begin + tile * Sm90::kTile;
    const SharedAddr s_keys = s_base + Sm90::kKeysAt + tile % 2 * Sm90::kTileBytes;
    MbarrierWait(s_base + Sm90::kFullAt + 8 * (tile % 2), tile / 2 % 2);
    if (tile_begin + Sm90::kTile > w.end) ZeroTail(s_keys, w.end - tile_begin);

    float s[32];
    StartScores(s_base, s_keys, s);
    WgmmaWait<0>(s);
    float top[2] = {m[0], m[1]};
    LATTE_UNROLL
    for (int i = 0; i < 32; ++i) {
      const int key = tile_begin + 8 * (i / 4) + 2 * (Thread() % 4) + i % 2;
      s[i] = key < rows.limit[i / 2 % 2] ? s[i] * p.scale_log2 : kMinusInf;
      top[i / 2 % 2] = Max(top[i / 2 % 2], s[i]);
    }
    float shift[2], decay[2];
    LATTE_UNROLL
    for (int i = 0; i < 2; ++i) {
      top[i] = QuadMax(top[i]);
      shift[i] = top[i] == kMinusInf ? 0 : top[i];
      decay[i] = Exp2(m[i] - shift[i]);
      m[i] = top[i];
      l[i] *= decay[i];
    }
    uint32_t probs[4][4];  // of k16 step j, as wgmma's A
    LATTE_UNROLL
    for (int i = 0; i < 32; i += 2) {
      const float p0 = Exp2(s[i] - shift[i / 2 % 2]);
      const float p1 = Exp2(s[i + 1] - shift[i / 2 % 2]);
      l[i / 2 % 2] += p0 + p1;
      probs[i / 8][i / 2 % 4] = PackBf16(p0, p1);
    }

    if (tile > 0) BarrierSync(kProbsFree, 256);
    LATTE_UNROLL
    for (int i = 0; i < 2; ++i) {
      LATTE_UNROLL
      for (int n = 0; n < 8; ++n)
        StoreShared(s_probs + SlabOffset(rows.row[i], n) + 4 * (Thread() % 4),
                    probs[n / 2][n % 2 * 2 + i]);
      if (Thread() % 4 == 0) StoreShared(s_base + Sm90::kDecayAt + 4 * rows.row[i], decay[i]);
    }
    FenceProxyAsync();
    BarrierArrive(kProbsReady, 256);

    LATTE_UNROLL
    for (int i = 0; i < 128; ++i) o[i] *= decay[i / 2 % 2];
    const SharedAddr b = Launder(s_keys);
    WgmmaFence();
    LATTE_UNROLL
    for (int k = 0; k < 4; ++k) Wgmma64x256(o, probs[k], ValueDescriptor(b, 0, k));
    WgmmaCommit();
    WgmmaWait<0>(o);
    FreeStage(s_base, tile % 2);
  }

  float inverse[2];
  LATTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    l[i] = QuadSum(l[i]);
    inverse[i] = l[i] > 0 ? 1 / l[i] : 0;
    if (Thread() % 4 != 0) continue;
    StoreShared(s_base + Sm90::kSumAt + 4 * rows.row[i], inverse[i]);
    if (w.row_begin + rows.row[i] < w.rows)
      StoreGlobal(p.lse + BlockX() * p.total_rows + int64_t{w.seq.query_start} * p.heads +
                      w.row_begin + rows.row[i],
                  l[i] > 0 ? (m[i] + Log2(l[i])) * 0.69314718056f : kMinusInf);
  }
  BarrierArrive(kSumReady, 256);
  StoreOutput(p, w, rows, 0, o, inverse);
}

// Warpgroup 1: the right half of O.
LATTE_DEVICE void Follow(const MlaDecodeParams& p, const Sm90Work& w, SharedAddr s_base) {
  const Sm90Rows rows = RowsOf(p, w);
  float o[128];
  LATTE_UNROLL
  for (int i = 0; i < 128; ++i) o[i] = 0;

  LATTE_NO_UNROLL
  for (int tile = 0; w.begin + tile * Sm90::kTile < w.end; ++tile) {
    const SharedAddr s_keys = s_base + Sm90::kKeysAt + tile % 2 * Sm90::kTileBytes;
    MbarrierWait(s_base + Sm90::kFullAt + 8 * (tile % 2), tile / 2 % 2);
    BarrierSync(kProbsReady, 256);
    float decay[2];
    LATTE_UNROLL
    for (int i = 0; i < 2; ++i)
      decay[i] = LoadSharedFloat(s_base + Sm90::kDecayAt + 4 * rows.row[i]);
    LATTE_UNROLL
    for (int i = 0; i < 128; ++i) o[i] *= decay[i / 2 % 2];
    const SharedAddr a = Launder(s_base + Sm90::kProbsAt);
    const SharedAddr b = Launder(s_keys);
    WgmmaFence();
    LATTE_UNROLL
    for (int k = 0; k < 4; ++k)
      Wgmma64x256(o, MatrixDescriptor(a + 32 * k, 16, 1024), ValueDescriptor(b, 4, k));
    WgmmaCommit();
    WgmmaWait<0>(o);
    FreeStage(s_base, tile % 2);
    if (w.begin + (tile + 1) * Sm90::kTile < w.end) BarrierArrive(kProbsFree, 256);
  }

  BarrierSync(kSumReady, 256);
  float inverse[2];
  LATTE_UNROLL
  for (int i = 0; i < 2; ++i) inverse[i] = LoadSharedFloat(s_base + Sm90::kSumAt + 4 * rows.row[i]);
  StoreOutput(p, w, rows, 256, o, inverse);
}

LATTE_DEVICE void MlaDecodeSm90(const MlaDecodeSm90Params& params) {
  const MlaDecodeParams& p = params.decode;
  Sm90Work w;
  w.seq = LoadGlobal(p.sequences + BlockZ());
  w.rows = w.seq.query_len * p.heads;
  w.row_begin = BlockY() * Sm90::kRows;
  if (w.row_begin >= w.rows) return;
  const int row_end = w.row_begin + Sm90::kRows < w.rows ? w.row_begin + Sm90::kRows : w.rows;
  w.begin = BlockX() * p.split_tokens;
  w.end = VisibleKeys(w.seq, (row_end - 1) / p.heads);
  if (w.end > w.begin + p.split_tokens) w.end = w.begin + p.split_tokens;

  const SharedAddr s_base = SharedBase();
  if (Thread() == 0) {
    LATTE_UNROLL
    for (int stage = 0; stage < 2; ++stage) {
      MbarrierInit(s_base + Sm90::kFullAt + 8 * stage, 1);
      MbarrierInit(s_base + Sm90::kEmptyAt + 8 * stage, 8);  // a warp each
    }
    FenceMbarrierInit();
  }
  SyncThreads();

  if (Thread() >= 256) {
    GiveRegisters<24>();
    if (Thread() == 256) Produce(params, w, s_base);
    return;
  }
  TakeRegisters<240>();
  if (w.begin < w.end) LoadQuerySlabs(p, w, s_base);
  FenceProxyAsync();
  BarrierSync(kQueryReady, 256);
  if (Thread() < 128)
    Score(p, w, s_base);
  else
    Follow(p, w, s_base);
}

}  // namespace latte::cuda
