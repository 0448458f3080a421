// Cache lines of a block of cached rows, asked for while the one before it is computed, a few with
// every step: asked for all at once, they would keep the loads of this one waiting.
//
// The lines come in bursts of four from each of the block's runs of rows in turn. A core's own
// prefetcher follows one stream per 4 KiB page, and memory answers 16 streams in turn 1.7 times as
// fast as one (22 GB/s for 13, one thread of Sapphire Rapids).
#pragma once

#include <cstdint>

#include "src/kernels/cpu/cached_row-inl.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/cpu/tiles-inl.h"

namespace latte::cpu {
namespace {

struct NextBlock {
  static constexpr int64_t kMaxRuns = 16;
  static constexpr int64_t kBurst = 256;  // bytes
  static constexpr int64_t kLine = 64;

  const char* runs[kMaxRuns];
  int64_t run_count, run_bytes;
  int64_t run, at, line;  // the next line: of which run's burst at `at`
  int64_t portion;        // lines

  // The block at `begin`, of up to `keys` keys in runs of `run_keys` that lie side by side, is asked
  // for in `portions` portions.
  template <class Task>
  void Start(const Task& t, int64_t begin, int64_t keys, int64_t run_keys, int64_t portions) {
    run_count = 0;
    run_bytes = run_keys * t.cache.bytes;
    for (int64_t key = begin; key < Min(begin + keys, t.key_end); key += run_keys)
      runs[run_count++] = CachedRowOf(t, key);
    run = line = 0;
    at = run_count > 0 ? 0 : run_bytes;
    const int64_t lines = run_count * ((run_bytes + kBurst - 1) / kBurst) * (kBurst / kLine);
    portion = lines / Max(portions, 1) + 1;
  }

  template <class V>
  void Ask(int64_t portions = 1) {
    for (int64_t i = portions * portion; i > 0 && at < run_bytes; --i) {
      V::Prefetch(runs[run] + at + line);
      line += kLine;
      if (line < kBurst) continue;
      line = 0;
      if (++run < run_count) continue;
      run = 0;
      at += kBurst;
    }
  }
};

}  // namespace
}  // namespace latte::cpu
