// Helpers of the launch files: pointers into tensors, and loops over tasks on the thread pool.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "src/base/math.h"
#include "src/base/work_ranges.h"
#include "src/kernels/cpu/launch.h"

namespace latte::cpu {

// Fewest multiply-adds of a task, about 10 µs: the cost of starting a task stays hidden, and
// threads stay balanced. A call with fewer runs on the calling thread.
inline constexpr int64_t kTaskMacs = 1 << 17;

// Elements of a task that moves or maps elements: some microseconds of work.
inline constexpr int64_t kElementsPerTask = 1 << 14;

// A task's scratch: first the part of the launch files, then the part of the target.
inline constexpr int64_t kLaunchBytes = 640 << 10;
inline constexpr int64_t kTaskBytes = kLaunchBytes + kScratchBytes;

template <class T>
T& LaunchScratch(std::byte* scratch) {
  static_assert(sizeof(T) <= kLaunchBytes && std::is_trivially_default_constructible_v<T>);
  return *reinterpret_cast<T*>(scratch);
}
inline void* TargetScratch(std::byte* scratch) { return scratch + kLaunchBytes; }

// Takes [count] elements from the front of `at`.
template <class T>
T* Take(std::byte*& at, int64_t count) {
  auto* const taken = reinterpret_cast<T*>(at);
  at += RoundUp(count * static_cast<int64_t>(sizeof(T)), 64);
  return taken;
}

inline const std::byte* At(const TensorView& t, int64_t i, int64_t j) {
  return t.data + (i * t.stride[0] + j * t.stride[1]) * SizeOf(t.dtype);
}
inline float* FloatAt(const TensorView& t, int64_t i, int64_t j) {
  return t.Ptr<float>() + i * t.stride[0] + j * t.stride[1];
}

// The scales of the weight W[b] from (row, column) on.
inline ScaleGrid ScaleGridAt(const BlockScale& s, int64_t b, int64_t row, int64_t column) {
  ScaleGrid out = {};
  if (s.scale.empty()) return out;
  out.scale = s.scale.data;
  out.type = s.scale.dtype;
  out.stride = s.scale.stride[0];
  out.zero = s.zero.empty() ? nullptr : s.zero.Ptr<const uint8_t>();
  out.zero_stride = s.zero.stride[0];
  out.rows = s.rows;
  out.columns = s.columns;
  out.row_begin = s.row_begin + b * s.batch_rows + row;
  out.column_begin = s.column_begin + column;
  return out;
}

// Runs f(i) for 0 ≤ i < count on the pool, or on the calling thread if `macs` is one task or less.
template <class F>
void ForEachTask(int64_t count, int64_t macs, const Exec& exec, const F& f) {
  if (macs > kTaskMacs) return exec.threads->ParallelFor(count, f);
  for (int64_t i = 0; i < count; ++i) f(i);
}

// The same with f(i, scratch); scratch: kTaskBytes and, after them, `more_bytes`.
template <class F>
void ForEachTaskInScratch(int64_t count, int64_t macs, const Exec& exec, const F& f,
                          int64_t more_bytes = 0) {
  const int64_t bytes = kTaskBytes + more_bytes;
  if (macs > kTaskMacs) return exec.threads->ParallelFor(count, bytes, f);
  exec.threads->ParallelFor(1, bytes, [&](int64_t, std::byte* scratch) {
    for (int64_t i = 0; i < count; ++i) f(i, scratch);
  });
}

// The same with f(i, next, scratch): each thread runs consecutive tasks (work_ranges.h); `next` is
// its next task, −1 after the last.
template <class F>
void ForEachTaskInRuns(int64_t count, int64_t macs, const Exec& exec, const F& f) {
  if (count > 0 && macs > kTaskMacs) return ParallelForInRuns(*exec.threads, count, kTaskBytes, f);
  ForEachTaskInScratch(count, macs, exec, [&](int64_t i, std::byte* scratch) {
    f(i, i + 1 < count ? i + 1 : -1, scratch);
  });
}

}  // namespace latte::cpu
