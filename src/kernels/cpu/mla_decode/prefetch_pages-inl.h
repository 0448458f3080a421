// Cache lines of a block of cached rows, asked for while the one before it is computed, a few with
// every step: asked for all at once, they would keep the loads of this one waiting.
//
// The lines come in bursts of four. With DecodeTask::many_streams they come from each of the
// block's runs of rows in turn: a core's own prefetcher follows one stream per 4 KiB page, and
// memory answers 16 streams in turn 1.7 times as fast as one (22 GB/s for 13, one thread of
// Sapphire Rapids). Else they come in memory's order, and a page is read once before its lines are
// asked for, as in prefetch_sequential-inl.h (Zen 5: 0.90 to 1.02 of the time of a decode, most 0.96 to
// 0.98).
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

struct NextBlock {
  static constexpr int64_t kMaxRuns = 16;
  static constexpr int64_t kBurst = 256;  // bytes
  static constexpr int64_t kWhole = 1024;

  const char* runs[kMaxRuns];
  Cache to;      // of lines in order
  bool in_turn;  // many streams
  int64_t run_count, run_bytes;
  int64_t run, at;       // the next burst
  int64_t portion, due;  // bursts · kWhole

  // The block at `begin`, of up to `keys` keys of the task in runs of `run_keys` that lie side by
  // side, is asked for in `portions` even portions.
  template <class Task>
  void Start(const Task& t, int64_t begin, int64_t keys, int64_t run_keys, int64_t portions) {
    run_count = 0;
    to = t.ask_into;
    in_turn = t.many_streams;
    run_bytes = run_keys * t.cache.bytes;
    for (int64_t key = begin; key < Min(begin + keys, t.key_end); key += run_keys)
      runs[run_count++] = CachedRowOf(t, key);
    run = at = due = 0;
    const int64_t bursts = run_count * ((run_bytes + kBurst - 1) / kBurst);
    portion = bursts * kWhole / Max(portions, 1) + 1;
    if (run_count == 0) run_bytes = 0;
  }

  template <class V>
  void Ask(int64_t portions = 1) {
    due += portions * portion;
    for (; due >= kWhole && at < run_bytes; due -= kWhole) {
      if (in_turn)
        AskInTurn<V>();
      else
        AskInOrder();
    }
  }

 private:
  template <class V>
  void AskInTurn() {
    for (int64_t i = 0; i < kBurst; i += 64) V::Prefetch(runs[run] + at + i);
    if (++run < run_count) return;
    run = 0;
    at += kBurst;
  }
  void AskInOrder() {
    const char* const burst = runs[run] + at;
    for (int64_t i = 0; i < kBurst; i += 64) AskFor(burst, i, to);
    const auto in_page = static_cast<int64_t>(reinterpret_cast<uintptr_t>(burst) % kPage);
    const int64_t next = at + kPage - in_page;  // page
    if (in_page < kBurst)
      TouchPage(next, /*read=*/false);
    else if (in_page / kBurst == kPage / kBurst / 2)
      TouchPage(next, /*read=*/true);
    at += kBurst;
    if (at < run_bytes || ++run == run_count) return;
    at = 0;
  }
  // Asks for the first line of the page that begins at `next` of this run, or reads it; behind its
  // end those of the next run.
  void TouchPage(int64_t next, bool read) const {
    const char* page = runs[run] + next;
    if (next >= run_bytes) {
      if (run + 1 == run_count) return;
      page = runs[run + 1];
    }
    if (read)
      ReadOnce(page);
    else
      AskFor(page, 0, to);
  }
};

}  // namespace
}  // namespace latte::cpu
