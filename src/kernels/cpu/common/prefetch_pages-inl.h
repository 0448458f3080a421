// Prefetch of the next block of cached rows while the current block is computed, a few cache lines
// per step: prefetching all of them at once would delay the loads of the current block.
//
// A block consists of segments, rows that are contiguous in memory. Lines are prefetched in bursts
// of four. With Tuning::many_dram_streams the bursts come from all segments in turn, because a
// core's own prefetcher follows one stream per 4 KiB page. Otherwise they come in memory order, and
// each page is touched before its lines are prefetched (TLB), as in SequentialPrefetch.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/cached_row-inl.h"
#include "src/kernels/cpu/common/prefetch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

struct PagePrefetch {
  static constexpr int64_t kMaxSegments = 16;
  static constexpr int64_t kBurst = 256;  // bytes
  static constexpr int64_t kOne = 1024;

  const char* segments[kMaxSegments];
  CacheLevel to;     // of sequential prefetch
  bool interleaved;  // bursts from all segments in turn
  int64_t segment_count, segment_bytes;
  int64_t segment, at;   // the next burst
  int64_t portion, due;  // bursts, in units of 1 / kOne

  // Starts the prefetch of the block at `begin`: up to `keys` keys in segments of `segment_keys`
  // contiguous rows, spread over `portions` calls of PrefetchNext.
  template <class Task>
  void Start(const Task& t, int64_t begin, int64_t keys, int64_t segment_keys, int64_t portions) {
    segment_count = 0;
    to = t.tuning->prefetch_level;
    interleaved = t.tuning->many_dram_streams;
    segment_bytes = segment_keys * t.cache.bytes;
    for (int64_t key = begin; key < Min(begin + keys, t.key_end); key += segment_keys)
      segments[segment_count++] = CachedRowOf(t, key);
    segment = at = due = 0;
    const int64_t bursts = segment_count * ((segment_bytes + kBurst - 1) / kBurst);
    portion = bursts * kOne / Max(portions, 1) + 1;
    if (segment_count == 0) segment_bytes = 0;
  }

  void PrefetchNext() {
    due += portion;
    for (; due >= kOne && at < segment_bytes; due -= kOne) {
      if (interleaved)
        PrefetchInterleaved();
      else
        PrefetchSequential();
    }
  }

 private:
  void PrefetchInterleaved() {
    for (int64_t i = 0; i < kBurst; i += kCacheLine) PrefetchL2(segments[segment] + at, i);
    if (++segment < segment_count) return;
    segment = 0;
    at += kBurst;
  }
  void PrefetchSequential() {
    const char* const burst = segments[segment] + at;
    for (int64_t i = 0; i < kBurst; i += kCacheLine) Prefetch(burst, i, to);
    const int64_t in_page = ByteInPage(burst);
    const int64_t next = at + kPage - in_page;  // byte of the segment at which the next page begins
    if (in_page < kBurst)
      PreparePage(next, /*read=*/false);
    else if (in_page / kBurst == kPage / kBurst / 2)
      PreparePage(next, /*read=*/true);
    at += kBurst;
    if (at < segment_bytes || ++segment == segment_count) return;
    at = 0;
  }
  // Prefetches the first line of the page at byte `next` of this segment, or touches it; behind the
  // segment's end, the first page of the next segment.
  void PreparePage(int64_t next, bool read) const {
    const char* page = segments[segment] + next;
    if (next >= segment_bytes) {
      if (segment + 1 == segment_count) return;
      page = segments[segment + 1];
    }
    if (read)
      TouchMemoryPage(page);
    else
      Prefetch(page, 0, to);
  }
};

}  // namespace
}  // namespace latte::cpu
