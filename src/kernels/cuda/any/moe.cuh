// any.route, any.group_by_expert, any.combine.
#pragma once

#include "src/kernels/cuda/any/rows.cuh"
#include "src/kernels/cuda/common/math.cuh"
#include "src/kernels/cuda/common/reduce.cuh"
#include "src/kernels/cuda/params/moe.h"

namespace latte::cuda {

LATTE_DEVICE SharedAddr WordAt(SharedAddr base, int i) {
  return base + 4 * static_cast<SharedAddr>(i);
}

// The best of `count` values in shared memory; of equal ones the lower index. All lanes receive it.
struct BestValue {
  float value;
  int32_t index;
};
LATTE_DEVICE BestValue BestOf(SharedAddr values, int count) {
  BestValue best = {MinusInfinity(), count};
  for (int i = Lane(); i < count; i += kWarp) {
    const float v = LoadShared<float>(WordAt(values, i));
    if (v > best.value || (v == best.value && i < best.index)) best = {v, i};
  }
  LATTE_UNROLL
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    const float v = ShuffleXor(best.value, mask);
    const int32_t i = ShuffleXor(best.index, mask);
    if (v > best.value || (v == best.value && i < best.index)) best = {v, i};
  }
  return best;
}

// The score of a group of `width` experts.
LATTE_DEVICE float GroupScoreOf(SharedAddr choice, int begin, int width, bool top2_sum) {
  float best = MinusInfinity(), second = MinusInfinity();
  for (int i = 0; i < width; ++i) {
    const float v = LoadShared<float>(WordAt(choice, begin + i));
    if (v > best) {
      second = best;
      best = v;
    } else if (v > second) {
      second = v;
    }
  }
  return top2_sum ? Add(best, second) : best;
}

// Excludes the experts of all but the best groups. `scores` has room for the groups.
LATTE_DEVICE void KeepBestGroups(const RouteParams& p, SharedAddr choice, SharedAddr scores) {
  const int width = p.e / p.groups;
  for (int g = Lane(); g < p.groups; g += kWarp)
    StoreShared(WordAt(scores, g), GroupScoreOf(choice, g * width, width, p.top2_sum != 0));
  SyncWarp();
  // A group that is kept has a score of NaN from then on, which no comparison finds.
  for (int i = 0; i < p.groups_kept; ++i) {
    const int g = BestOf(scores, p.groups).index;
    SyncWarp();
    if (Lane() == 0 && g < p.groups) StoreShared(WordAt(scores, g), BitsFloat(0x7fc00000u));
    SyncWarp();
  }
  for (int i = Lane(); i < p.e; i += kWarp) {
    const float score = LoadShared<float>(WordAt(scores, i / width));
    if (score == score) StoreShared(WordAt(choice, i), MinusInfinity());
  }
  SyncWarp();
}

// The scores of the experts: a softmax or a sigmoid of the logits.
LATTE_DEVICE void ScoreExperts(const RouteParams& p, const float* logits, SharedAddr scores) {
  float max = MinusInfinity();
  if (p.sigmoid == 0)
    for (int i = Lane(); i < p.e; i += kWarp) max = Max(max, LoadGlobal(logits + i));
  max = WarpMax(max);
  float sum = 0;
  for (int i = Lane(); i < p.e; i += kWarp) {
    const float z = LoadGlobal(logits + i);
    const float s = p.sigmoid != 0 ? Div(1.0f, Add(1.0f, Exp(-z))) : Exp(Sub(z, max));
    sum = Add(sum, s);
    StoreShared(WordAt(scores, i), s);
  }
  sum = WarpSum(sum);
  if (p.sigmoid != 0) return SyncWarp();
  for (int i = Lane(); i < p.e; i += kWarp)
    StoreShared(WordAt(scores, i), Div(LoadShared<float>(WordAt(scores, i)), sum));
  SyncWarp();
}

// A warp a token. Shared memory: two words for each expert, one for each group.
LATTE_DEVICE void Route(const RouteParams& p) {
  const int64_t t = BlockX();
  const SharedAddr scores = SharedBase(), choice = WordAt(scores, p.e);
  ScoreExperts(p, p.logits + t * p.logits_stride, scores);
  for (int i = Lane(); i < p.e; i += kWarp) {
    const float s = LoadShared<float>(WordAt(scores, i));
    StoreShared(WordAt(choice, i), p.bias == nullptr ? s : Add(s, LoadGlobal(p.bias + i)));
  }
  SyncWarp();
  if (p.groups > 1) KeepBestGroups(p, choice, WordAt(choice, p.e));
  float sum = 0;
  for (int k = 0; k < p.chosen; ++k) {
    // An expert that is chosen has a choice of NaN from then on. All may be NaN from the start.
    const int best = BestOf(choice, p.e).index;
    const int e = best < p.e ? best : 0;
    sum = Add(sum, LoadShared<float>(WordAt(scores, e)));
    SyncWarp();
    if (Lane() == 0) {
      StoreShared(WordAt(choice, e), BitsFloat(0x7fc00000u));
      StoreGlobal(p.experts + t * p.chosen + k, e);
    }
    SyncWarp();
  }
  const float factor = p.normalize != 0 ? Div(p.scale, Add(sum, 1e-20f)) : p.scale;
  for (int k = Lane(); k < p.chosen; k += kWarp) {
    const int e = LoadGlobal(p.experts + t * p.chosen + k);
    StoreGlobal(p.weights + t * p.chosen + k, Mul(LoadShared<float>(WordAt(scores, e)), factor));
  }
}

inline constexpr int kGroupThreads = 128;

// One block; a lane an expert, which counts its pairs and then lists them in order. Shared memory:
// a word for each expert, and one more.
LATTE_DEVICE void GroupByExpert(const GroupByExpertParams& p) {
  const SharedAddr first = SharedBase();
  for (int e = Thread(); e < p.e; e += kGroupThreads) {
    int32_t count = 0;
    for (int i = 0; i < p.pairs; ++i) count += LoadGlobal(p.experts + i) == e ? 1 : 0;
    StoreShared(WordAt(first, e + 1), count);
  }
  SyncThreads();
  if (Thread() == 0) {
    int32_t sum = 0;
    StoreShared(first, sum);
    for (int e = 1; e <= p.e; ++e) {
      sum += LoadShared<int32_t>(WordAt(first, e));
      StoreShared(WordAt(first, e), sum);
    }
  }
  SyncThreads();
  for (int e = Thread(); e <= p.e; e += kGroupThreads) {
    int32_t row = LoadShared<int32_t>(WordAt(first, e));
    StoreGlobal(p.first + e, row);
    for (int i = 0; e < p.e && i < p.pairs; ++i) {
      if (LoadGlobal(p.experts + i) != e) continue;
      StoreGlobal(p.row + i, row);
      StoreGlobal(p.token + row, i / p.chosen);
      ++row;
    }
  }
}

// Grid: ⌈d/128⌉ · t.
LATTE_DEVICE void Combine(const CombineParams& p) {
  const int columns = (p.d + kPointThreads - 1) / kPointThreads;
  const int d = BlockX() % columns * kPointThreads + Thread();
  const int64_t t = BlockX() / columns;
  if (d >= p.d) return;
  float sum = 0;
  for (int k = 0; k < p.chosen; ++k) {
    const int64_t row = LoadGlobal(p.rows + t * p.chosen + k);
    sum = Add(sum, Mul(LoadGlobal(p.weights + t * p.chosen + k), LoadGlobal(p.x + row * p.d + d)));
  }
  float* const y = p.y + t * p.d + d;
  StoreGlobal(y, p.add != 0 ? Add(LoadGlobal(y), sum) : sum);
}

}  // namespace latte::cuda
