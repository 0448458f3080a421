// The loops of the int8 kernels for large M: panels of 64 rows of B, of which one chunk at a time
// is packed into scratch so that lanes are rows of B.
//
// A Form says what an instruction set does its own way:
//   A, kLanes, kMr, kNr     A in chunks; s32 lanes of a register; rows of A × rows of B of a
//                           micro-kernel
//   kABytes, kMaxABytes     of a chunk of A, and of all of them
//   kPackedBytes, kCalls    of a packed chunk of B; calls of the micro-kernel per chunk and kMr
//                           rows of A
//   PackA(t, x)
//   WithVectors(rows, f)    f(Int<registers of a panel with `rows` rows of B>)
//   PackB<kVectors, kWhole>, AddTiles<kM, kVectors>
//                           a chunk of B; its product with kM rows of A, to totals
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_dot-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kS8PanelN = 64;
constexpr int64_t kS8MaxPassK = 4096;

template <class Form>
struct Packed64Scratch {
  typename Form::A x;
  const typename Form::Kind::T* rows[kS8PanelN];  // of B; missing rows repeat the last one
  alignas(64) uint8_t w[Form::kPackedBytes];
  GroupScales<kS8PanelN, kS8MaxPassK / kMinGroupK> scales;
  alignas(64) int32_t sums[kChunkGroups][Form::kMr][Form::kNr];  // of a tile
  alignas(64) float totals[kMaxTaskM][kS8PanelN];
};

// Columns of a pass.
template <class Form>
constexpr int64_t Packed64PassK(int64_t m) {
  return Min(Form::kMaxABytes / Form::kABytes / m * kChunkK, kS8MaxPassK);
}

// Adds the sums of a chunk of rows [i, +kM) of A and rows [n, +kN) of the panel to the totals.
template <class Form, int64_t kM, int64_t kN>
void AddSums(Packed64Scratch<Form>& s, int64_t i, int64_t chunk, int64_t n) {
  using Kind = typename Form::Kind;
  using V = typename Kind::V;
  const int64_t zeroed = chunk * Kind::kGroups * kS8PanelN;
  const int64_t scaled = Kind::kOneScale ? 0 : zeroed;
  for (int64_t r = 0; r < kM; ++r) {
    const int64_t of_row = s.x.At(i + r, chunk);
    for (int64_t j = 0; j < kN; j += Form::kLanes) {
      float* const total = s.totals[i + r] + n + j;
      V::Store(total, AddChunk<Kind, kS8PanelN>(
                          [&](int64_t group) { return V::LoadBytes(s.sums[group][r] + j); },
                          s.x.start + of_row * Kind::kGroups, s.x.scale[of_row],
                          s.scales.scale + scaled + n + j, s.scales.zero + zeroed + n + j,
                          V::Load(total)));
    }
  }
}

// Rows [n, +rows) of B, at most 64, times all rows of A.
template <class Form, int64_t kVectors>
void Packed64Panel(const GemmTask& t, const typename Form::Kind::T* w, int64_t n, int64_t rows,
                   Packed64Scratch<Form>& s) {
  using Kind = typename Form::Kind;
  using V = typename Kind::V;
  using T = typename Kind::T;
  constexpr int64_t kLanes = Form::kLanes;
  const typename Form::A& x = s.x;
  const int64_t pass = Packed64PassK<Form>(x.rows);
  const PanelBegin next = NextPanelOf(t, n, rows, x.begin, x.k);
  SequentialPrefetch scales = ScalePrefetchOf(t, next.n, kS8PanelN, next.k, pass, x.chunks());
  SequentialPrefetch weights =
      SequentialPrefetchOf<T>(t, next.n, kS8PanelN, next.k, pass, CacheLevel::kL1);
  weights.SpreadOverRuns(x.chunks() * ((x.rows + Form::kMr - 1) / Form::kMr) * Form::kCalls);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kLanes)
      V::Store(s.totals[i] + j,
               InitialTotal<V>(x.begin == 0, t.y + i * t.y_stride + n + j, rows - j));
  for (int64_t row = 0; row < kS8PanelN; ++row)
    s.rows[row] = w + (n + Min(row, rows - 1)) * t.w_stride + x.begin / kValuesPer<T>;
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kChunkK;
    scales.PrefetchNext();
    if (values >= kChunkK)
      Form::template PackB<kVectors, true>(s, chunk, values);
    else
      Form::template PackB<kVectors, false>(s, chunk, values);
    ForEachRun<Form::kMr>(x.rows, [&](int64_t i, auto count) {
      Form::template AddTiles<decltype(count)::value, kVectors>(s, i, chunk, rows, weights);
    });
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < rows; j += kLanes)
      StoreTotal<Kind>(t, last, s.scales.scale + j, n + j, rows - j, V::Load(s.totals[i] + j),
                       t.y + i * t.y_stride + n + j);
}

template <class Form>
[[gnu::noinline]] void GemmS8Packed64Of(const GemmTask& t) {
  const auto* const w = static_cast<const typename Form::Kind::T*>(t.w);
  auto& s = ScratchAs<Packed64Scratch<Form>>(t.scratch);
  typename Form::A& x = s.x;
  x.rows = t.m;
  x.row_step = 1;
  x.chunk_step = t.m;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(Packed64PassK<Form>(t.m), t.k - x.begin);
    Form::PackA(t, x);
    for (int64_t n = 0; n < t.n; n += kS8PanelN) {
      const int64_t rows = Min(kS8PanelN, t.n - n);
      PrepareScales<typename Form::Kind>(t, n, rows, x.begin, x.k, s.scales);
      Form::WithVectors(rows, [&](auto vectors) {
        Packed64Panel<Form, decltype(vectors)::value>(t, w, n, rows, s);
      });
    }
  }
}

}  // namespace
}  // namespace latte::cpu
