// Groups the sequences of a step by attention path, so that each path is computed once for all of
// its sequences.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "src/kernels/params/sequence_chunk.h"

namespace latte {

// Tokens from a position on take the sparse path; with this position, none does.
inline constexpr int64_t kNeverSparse = std::numeric_limits<int64_t>::max();

// Sorts by path, in the order of MlaPath; items of one path keep their order. `path` is a member or
// a function that gives an item's path.
template <class T, class Path>
void SortByPath(std::vector<T>& items, const Path& path) {
  std::ranges::stable_sort(items, {}, path);
}

// Calls f(group) for each run of neighbouring sequences with one path: once per path if they are
// sorted by path.
template <class F>
void ForEachPathGroup(std::span<const SequenceChunk> sequences, const F& f) {
  while (!sequences.empty()) {
    const MlaPath path = sequences.front().path;
    const auto end =
        std::ranges::find_if(sequences, [path](const SequenceChunk& s) { return s.path != path; });
    const auto count = static_cast<size_t>(end - sequences.begin());
    f(sequences.first(count));
    sequences = sequences.subspan(count);
  }
}

}  // namespace latte
