// The owner of each key of a sequence, if several ranks divide a cache (docs/ranks.md).
//
// The unit is a split: kSplitKeys positions from a multiple of kSplitKeys. Split s belongs to owner
// s mod D. Attention computes each split from zero and merges splits from left to right
// (docs/kernels/mla_decode.md), so the division changes no byte of a split.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/math.h"

namespace latte {

// A page has a power of two up to 256 tokens, so no page lies in two splits.
inline constexpr int64_t kSplitKeys = 1024;

// Owner `index` of `count` ranks. One owner has all keys.
struct KeyOwner {
  int64_t index = 0;
  int64_t count = 1;

  static constexpr int64_t SplitsIn(int64_t keys) { return CeilDiv(keys, kSplitKeys); }

  bool OwnsSplit(int64_t split) const { return split % count == index; }
  // The number of its splits among the first `keys` keys, and the number of the i-th of them.
  int64_t SplitsOf(int64_t keys) const {
    return std::max<int64_t>(0, CeilDiv(SplitsIn(keys) - index, count));
  }
  int64_t Split(int64_t i) const { return i * count + index; }
  // How many of the first `keys` keys it has.
  int64_t KeysOf(int64_t keys) const {
    const int64_t splits = SplitsOf(keys);
    if (splits == 0) return 0;
    const int64_t last = Split(splits - 1) * kSplitKeys;
    return (splits - 1) * kSplitKeys + std::min(kSplitKeys, keys - last);
  }
};

}  // namespace latte
