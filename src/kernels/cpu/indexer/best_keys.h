// The best keys of a token among its scored keys, for launch files.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {

// A key as a number that is larger the better the key is: its score, then its position, the lower
// the better. No two keys of a sequence are equal.
using RankedKey = uint64_t;

inline RankedKey RankedKeyOf(float score, int64_t position) {
  if (std::isnan(score)) score = -std::numeric_limits<float>::infinity();
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // −0 becomes +0
  const uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<RankedKey>(ordered) << 32 | ~static_cast<uint32_t>(position);
}
inline int32_t PositionOf(RankedKey key) {
  return static_cast<int32_t>(~static_cast<uint32_t>(key));
}

inline float ScoreOf(RankedKey key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>((ordered >> 31) != 0 ? ordered & 0x7fffffffu : ~ordered);
}

// Keeps the `most` best of `keys` in their order, and returns them. copy: room for as many keys.
inline std::span<RankedKey> KeepBest(std::span<RankedKey> keys, int64_t most, RankedKey* copy) {
  if (std::ssize(keys) <= most) return keys;
  std::ranges::copy(keys, copy);
  RankedKey* const last = copy + most - 1;
  std::nth_element(copy, last, copy + keys.size(), std::greater());
  const auto dropped = std::ranges::remove_if(keys, [&](RankedKey key) { return key < *last; });
  return keys.first(static_cast<size_t>(dropped.begin() - keys.begin()));
}

// Keys are added in blocks, by rising position, and kept in this order. Trivial, because it lives
// in scratch; Begin first.
struct BestKeys {
  // Keys for which a list of `most` keys needs room.
  static int64_t Room(int64_t most) { return 2 * most + kIndexKeys; }

  void Begin(RankedKey* room, int64_t most_keys) {
    keys = room;
    count = 0;
    most = most_keys;
    bar = 0;
  }
  // Adds the scores of consecutive keys from `position` on, at most kIndexKeys. copy: Room(most).
  void Add(std::span<const float> scores, int64_t position, RankedKey* copy) {
    for (const float score : scores) {
      const RankedKey key = RankedKeyOf(score, position++);
      keys[count] = key;
      count += key > bar ? 1 : 0;
    }
    if (count + kIndexKeys > Room(most)) Shrink(copy);
  }
  void Shrink(RankedKey* copy) {
    if (count <= most) return;
    count = std::ssize(KeepBest(Keys(), most, copy));
    bar = *std::ranges::min_element(Keys());
  }
  std::span<RankedKey> Keys() const { return {keys, static_cast<size_t>(count)}; }

  RankedKey* keys;
  int64_t count;
  int64_t most;
  RankedKey bar;  // a key below it is not among the best
};

}  // namespace latte::cpu
