// any.mla_decode, any.mha, any.lse_merge: attention in f32 without tensor cores, for every shape.
//
// A block computes one (token, head). Keys come in tiles of 128, which begin at multiples of 128: a
// lane computes the score of one key, then each lane sums some columns of the values over the keys
// in order. So the result depends on the query and its keys alone.
#pragma once

#include "src/kernels/cuda/common/cache_rows.cuh"
#include "src/kernels/cuda/common/math.cuh"
#include "src/kernels/cuda/common/reduce.cuh"
#include "src/kernels/cuda/params/attention.h"

namespace latte::cuda {

inline constexpr int kAttentionThreads = 128;
inline constexpr int kTileKeys = kAttentionThreads;
inline constexpr int kMostColumns = 8 * kAttentionThreads;  // of a value
inline constexpr int kAttentionShared = kReductionBytes + 4 * kTileKeys;

// Softmax of one row while its keys arrive, with the columns of this lane.
struct OnlineRow {
  static constexpr int kColumns = kMostColumns / kAttentionThreads;

  float max = MinusInfinity();
  float sum = 0;
  float o[kColumns] = {};
};

// Adds a tile: `score` of this lane's key, −∞ without one; value(j, column) of key j of the tile.
template <class Value>
LATTE_DEVICE void AddTile(OnlineRow& row, float score, int keys, int columns, const Value& value) {
  const SharedAddr scratch = SharedBase(), weights = scratch + kReductionBytes;
  const float max = Max(row.max, BlockMax(score, scratch));
  // A score that is NaN leaves max as it is, and gets a weight that is NaN.
  const float shift = max == MinusInfinity() ? 0.0f : max;
  const float weight = score == MinusInfinity() ? 0.0f : Exp(Sub(score, shift));
  const float kept = row.max == MinusInfinity() ? 0.0f : Exp(Sub(row.max, max));
  StoreShared(weights + 4 * static_cast<SharedAddr>(Thread()), weight);
  row.sum = Fma(row.sum, kept, BlockSum(weight, scratch));  // waits for the weights too
  row.max = max;
  LATTE_UNROLL
  for (int i = 0; i < OnlineRow::kColumns; ++i) {
    const int column = Thread() + i * kAttentionThreads;
    if (column >= columns) continue;
    float o = Mul(row.o[i], kept);
    for (int j = 0; j < keys; ++j)
      o = Fma(LoadShared<float>(weights + 4 * static_cast<SharedAddr>(j)), value(j, column), o);
    row.o[i] = o;
  }
  SyncThreads();  // before the weights of the next tile
}

LATTE_DEVICE void FinishRow(const OnlineRow& row, int columns, float* o, float* lse) {
  const bool empty = row.sum == 0.0f;  // no key; max may be −∞ too if all scores are NaN
  LATTE_UNROLL
  for (int i = 0; i < OnlineRow::kColumns; ++i) {
    const int column = Thread() + i * kAttentionThreads;
    if (column < columns) StoreGlobal(o + column, empty ? 0.0f : Div(row.o[i], row.sum));
  }
  if (lse != nullptr && Thread() == 0)
    StoreGlobal(lse, empty ? MinusInfinity() : Add(row.max, Log(row.sum)));
}

// A row of a launch in its sequence.
struct RowPlace {
  const int32_t* pages;  // of the sequence
  int32_t position;      // of the token
};
LATTE_DEVICE RowPlace PlaceOf(const SequenceTable& table, int row) {
  const StepChunk* const chunks = table.chunks;
  const int begin = LoadGlobal(&chunks[0].query_start);
  int s = 0;
  while (s + 1 < table.count && row >= LoadGlobal(&chunks[s + 1].query_start) - begin) ++s;
  const int first = LoadGlobal(&chunks[s].query_start) - begin;
  return {table.pages + LoadGlobal(&chunks[s].first_page) - LoadGlobal(&chunks[0].first_page),
          LoadGlobal(&chunks[s].cached_len) + row - first};
}

// The row of the cache that holds key `key`.
LATTE_DEVICE int64_t CacheRow(const int32_t* pages, int page_tokens, int key) {
  const int64_t page = LoadGlobal(pages + key / page_tokens);
  return page * page_tokens + key % page_tokens;
}

LATTE_DEVICE int ListLength(const int32_t* list, int most) {
  int low = 0, high = most;  // the first −1
  while (low < high) {
    const int middle = (low + high) / 2;
    if (LoadGlobal(list + middle) == -1)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Grid: [rows, h].
LATTE_DEVICE void MlaDecode(const MlaDecodeParams& p) {
  const int h = BlockY();
  const int64_t t = BlockX();
  const RowPlace place = PlaceOf(p.sequences, static_cast<int>(t));
  const int32_t* const list = p.positions == nullptr ? nullptr : p.positions + t * p.most;
  const int keys = list == nullptr ? place.position + 1 : ListLength(list, p.most);
  const auto row_of = [&](int i) {
    return RowOf(p.cache, CacheRow(place.pages, p.cache.page_tokens,
                                   list == nullptr ? i : LoadGlobal(list + i)));
  };
  const float* const q_latent = p.q_latent + t * p.latent_stride + h * p.latent_head;
  const float* const q_rope = p.q_rope + t * p.rope_stride + h * p.rope_head;
  OnlineRow row;
  for (int begin = 0; begin < keys; begin += kTileKeys) {
    const int count = keys - begin < kTileKeys ? keys - begin : kTileKeys;
    float score = MinusInfinity();
    if (Thread() < count) score = Mul(RowDot(row_of(begin + Thread()), q_latent, q_rope), p.scale);
    AddTile(row, score, count, p.cache.c,
            [&](int j, int column) { return row_of(begin + j).Value(column); });
  }
  const int64_t out = t * p.h + h;
  FinishRow(row, p.cache.c, p.o + out * p.cache.c, p.lse == nullptr ? nullptr : p.lse + out);
}

// Grid: [t, h].
LATTE_DEVICE void Mha(const MhaParams& p) {
  const int h = BlockY();
  const int64_t t = BlockX();
  const int64_t visible = p.q_begin + t + 1 - p.key_begin;
  const int keys = visible < 0 ? 0 : visible < p.keys ? static_cast<int>(visible) : p.keys;
  const float* const q_nope = p.q_nope + t * p.q_nope_stride + h * p.q_nope_head;
  const float* const q_rope = p.q_rope + t * p.q_rope_stride + h * p.q_rope_head;
  OnlineRow row;
  // Tiles begin at multiples of 128 of absolute positions.
  const int lead = static_cast<int>(p.key_begin % kTileKeys);
  for (int begin = 0; begin < keys;) {
    const int most = kTileKeys - (begin + lead) % kTileKeys;
    const int count = keys - begin < most ? keys - begin : most;
    float score = MinusInfinity();
    if (Thread() < count) {
      const int64_t key = begin + Thread();
      const float* const k_nope = p.k_nope + key * p.k_nope_stride + h * p.k_nope_head;
      const float* const k_rope = p.k_rope + key * p.k_rope_stride + h * p.k_rope_head;
      float dot = 0;
      for (int i = 0; i < p.n; ++i) dot = Fma(LoadGlobal(q_nope + i), LoadGlobal(k_nope + i), dot);
      for (int i = 0; i < p.r; ++i) dot = Fma(LoadGlobal(q_rope + i), LoadGlobal(k_rope + i), dot);
      score = Mul(dot, p.scale);
    }
    AddTile(row, score, count, p.width, [&](int j, int column) {
      return LoadGlobal(p.v + (begin + j) * p.v_stride + h * p.v_head + column);
    });
    begin += count;
  }
  const int64_t out = t * p.h + h;
  FinishRow(row, p.width, p.o + out * p.width, p.lse + out);
}

// Grid: m.
LATTE_DEVICE void LseMerge(const LseMergeParams& p) {
  const int64_t m = BlockX();
  const auto is_finite = [](float x) { return Sub(x, x) == 0.0f; };
  const float a = LoadGlobal(p.lse + m), b = LoadGlobal(p.lse_b + m);
  const bool has_a = is_finite(a), has_b = is_finite(b);
  if (has_a && !has_b) return;
  const float max = !has_a ? b : !has_b ? a : Max(a, b);
  const float weight_a = has_a ? Exp(Sub(a, max)) : 0.0f;
  const float weight_b = has_b ? Exp(Sub(b, max)) : 0.0f;
  const float sum = Add(weight_a, weight_b);
  SyncThreads();  // before lse changes
  for (int i = Thread(); i < p.width; i += kAttentionThreads) {
    float* const o = p.o + m * p.width + i;
    const float of_b = has_b ? LoadGlobal(p.o_b + m * p.width + i) : 0.0f;
    if (!has_a) {
      StoreGlobal(o, of_b);
      continue;
    }
    StoreGlobal(o, Div(Fma(weight_a, LoadGlobal(o), Mul(weight_b, of_b)), sum));
  }
  if (Thread() == 0)
    StoreGlobal(p.lse + m, !has_b ? MinusInfinity() : !has_a ? b : Add(max, Log(sum)));
}

}  // namespace latte::cuda
