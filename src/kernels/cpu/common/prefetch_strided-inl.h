// Software prefetch for rows of B that are read in parallel, on machines whose cores follow many DRAM
// streams (Tuning::many_dram_streams): each row prefetches its own line a short distance ahead, and at
// its end the first lines of the row that takes its place.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kStridedPrefetchBytes = 1024;  // distance for four rows in parallel

// The prefetch distance at each byte of a row.
struct StridedPrefetch {
  int64_t turn;   // first byte whose prefetch goes to the row that takes this row's place
  int64_t here;   // distance within the row
  int64_t there;  // distance into the other row

  int64_t Of(int64_t byte) const { return byte < turn ? here : there; }
};

// For columns [k, k + columns) of rows [n, n + rows) of B in parallel. After the last rows come the
// first rows of the next columns, or of the next task; without one, cached lines are prefetched.
template <class T>
StridedPrefetch StridedPrefetchOf(const GemmTask& t, int64_t n, int64_t rows, int64_t k,
                                  int64_t columns, int64_t ahead = kStridedPrefetchBytes) {
  const auto bytes = [](int64_t values) {
    return values / kValuesPer<T> * static_cast<int64_t>(sizeof(T));
  };
  const char* const from =
      reinterpret_cast<const char*>(static_cast<const T*>(t.w) + n * t.w_stride) + bytes(k);
  const char* to = from;
  if (n + rows < t.n)
    to = from + rows * t.w_stride * static_cast<int64_t>(sizeof(T));
  else if (k + columns < t.k)
    to = static_cast<const char*>(t.w) + bytes(k + columns);
  else if (t.next != nullptr)
    to = static_cast<const char*>(t.next->w);
  const int64_t here = Min(ahead, bytes(columns));
  return {bytes(k + columns) - here, here, to - from + here - bytes(columns)};
}

}  // namespace
}  // namespace latte::cpu
