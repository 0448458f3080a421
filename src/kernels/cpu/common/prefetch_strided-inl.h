// Rows of W read side by side, where a core follows many streams of memory (Machine::many_streams):
// each row asks for its own line a little ahead, at its end for the first ones of the row that
// takes its place. Reading 512 MiB by two threads of an Emerald Rapids, with the dot products of
// one row of x, GB/s, medians of 5, rows of 14,336 and 2,048 bytes (the ceiling of `latte bench`
// reads 29.0 and 29.4):
//
//   rows side by side, bytes ahead, into   1, 0   1, 6144, L1   1, 6144, L2   4, 1024, L1   16,
//   512, L1
//                                  14,336  21.2          26.9          29.5          30.8          31.1
//                                   2,048  21.3          26.9          29.2          29.9          30.1
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/isa/dtypes-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kSideAhead = 1024;  // bytes, of four rows

// How far behind a byte of a row lies what it asks for.
struct SideAhead {
  int64_t turn;  // byte from which on it lies in the row that takes this one's place
  int64_t here, there;

  int64_t Of(int64_t byte) const { return byte < turn ? here : there; }
};

// Columns [k, +columns) of `rows` rows of W side by side from row n on. Behind the last ones come
// the first of the columns that follow, or of the next task; with none, lines that are here already
// are asked for.
template <class T>
SideAhead SideAheadOf(const LinearTask& t, int64_t n, int64_t rows, int64_t k, int64_t columns,
                      int64_t ahead = kSideAhead) {
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
