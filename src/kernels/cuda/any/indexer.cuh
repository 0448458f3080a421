// any.index_topk: the best keys of each token, by a search for the K-th best score.
//
// A block a token. Scores are ordered as integers; 32 rounds find the K-th best bit by bit, each of
// which counts the keys above a bound. Shared memory keeps the first scores, and the others are
// computed again in every round. Then the keys above the bound are listed in ascending order, with
// the first of those that equal it.
#pragma once

#include "src/kernels/cuda/any/attention.cuh"

namespace latte::cuda {

inline constexpr int kIndexThreads = 128;

// Larger for larger floats; +0 and −0 are equal, and NaN is −∞.
LATTE_DEVICE uint32_t OrderOf(float x) {
  if (x != x) x = MinusInfinity();
  if (x == 0.0f) x = 0.0f;
  const uint32_t bits = FloatBits(x);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The scores of the keys of one token.
struct KeyScores {
  const IndexTopKParams& p;
  int64_t t;
  const int32_t* pages;
  SharedAddr kept;

  LATTE_DEVICE uint32_t Compute(int key) const {
    const CachedRow row = RowOf(p.cache, CacheRow(pages, p.cache.page_tokens, key));
    float sum = 0;
    for (int h = 0; h < p.h; ++h) {
      const float dot = RowDot(row, p.q + t * p.q_stride + h * p.q_head, nullptr);
      sum = Fma(LoadGlobal(p.weights + t * p.weights_stride + h), dot > 0 ? dot : 0.0f, sum);
    }
    return OrderOf(sum);
  }
  LATTE_DEVICE uint32_t Of(int key) const {
    if (key >= p.kept_scores) return Compute(key);
    return FloatBits(LoadShared<float>(kept + 4 * static_cast<SharedAddr>(key)));
  }
};

// Keys whose order is at least `bound`.
LATTE_DEVICE int CountAtLeast(const KeyScores& scores, int keys, uint32_t bound,
                              SharedAddr scratch) {
  int32_t count = 0;
  for (int key = Thread(); key < keys; key += kIndexThreads)
    count += scores.Of(key) >= bound ? 1 : 0;
  return BlockSum(count, scratch);
}

// The number of lanes of the block before this one for which `flag` is 1.
LATTE_DEVICE int32_t LanesBefore(int32_t flag, SharedAddr scratch) {
  int32_t before = 0;
  LATTE_UNROLL
  for (int lane = 0; lane < kWarp; ++lane) {
    const int32_t other = Broadcast(flag, lane);
    if (lane < Lane()) before += other;
  }
  const int32_t own = WarpSum(flag);
  SyncThreads();
  if (Lane() == 0) StoreShared(scratch + 4 * static_cast<SharedAddr>(Warp()), own);
  SyncThreads();
  for (int w = 0; w < Warp(); ++w)
    before += LoadShared<int32_t>(scratch + 4 * static_cast<SharedAddr>(w));
  return before;
}

// Grid: rows. Shared memory: a reduction and kept_scores words.
LATTE_DEVICE void IndexTopK(const IndexTopKParams& p) {
  const int64_t t = BlockX();
  const RowPlace place = PlaceOf(p.sequences, static_cast<int>(t));
  const int keys = place.position + 1;
  int32_t* const list = p.positions + t * p.most;
  if (keys <= p.most) {
    for (int i = Thread(); i < p.most; i += kIndexThreads) StoreGlobal(list + i, i < keys ? i : -1);
    return;
  }
  const SharedAddr scratch = SharedBase();
  const KeyScores scores{p, t, place.pages, scratch + kReductionBytes};
  for (int key = Thread(); key < keys && key < p.kept_scores; key += kIndexThreads)
    StoreShared(scores.kept + 4 * static_cast<SharedAddr>(key), BitsFloat(scores.Compute(key)));
  SyncThreads();
  uint32_t bound = 0;  // the order of the K-th best
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t next = bound | 1u << bit;
    if (CountAtLeast(scores, keys, next, scratch) >= p.most) bound = next;
  }
  const int above = bound == 0xffffffffu ? 0 : CountAtLeast(scores, keys, bound + 1, scratch);
  int listed = 0, equal = 0;  // of the keys before a tile
  for (int begin = 0; begin < keys; begin += kIndexThreads) {
    const int key = begin + Thread();
    const uint32_t order = key < keys ? scores.Of(key) : 0;
    const int32_t equals = key < keys && order == bound ? 1 : 0;
    const bool fits = equal + LanesBefore(equals, scratch) < p.most - above;
    const int32_t is_listed = key < keys && (order > bound || (equals == 1 && fits)) ? 1 : 0;
    const int32_t at = listed + LanesBefore(is_listed, scratch);
    if (is_listed == 1) StoreGlobal(list + at, key);
    equal += BlockSum(equals, scratch);
    listed += BlockSum(is_listed, scratch);
  }
}

}  // namespace latte::cuda
