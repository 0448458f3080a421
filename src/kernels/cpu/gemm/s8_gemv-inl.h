// The loops of the int8 kernels that read rows of B one by one, for M ≤ 4: rows of B in groups of a
// register's lanes, chunks in batches whose sums fill one register. The sums of a group transpose,
// so that rows of B are in lanes.
//
// A Form says what an instruction set does its own way:
//   A, kLanes, kMaxGroups    A in chunks; s32 lanes of a register; scale groups of a row of B and
//                            a pass
//   PassK(m), RowStep(x)     columns of a pass; chunks from row to row of A
//   PackA(t, x)
//   Ahead(t, distance, x, row, span)
//                            bytes from the chunks at `span` of a row of B to what to prefetch
//   DotBatch<kM, kWhole>     integer sums of a batch of chunks, of a row of B and kM rows of A
//   PlaceOf(chunk, group)    the lane of a scale group of a chunk of a batch in these sums
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_weights-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_dot-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxGemvM = 4;

// Sums of kLanes rows of B and one row of A.
template <class Form>
constexpr int64_t kBatchSums = Form::kLanes* Form::kLanes;

template <class Form>
struct GemvScratch {
  typename Form::A x;
  GroupScales<Form::kLanes, Form::kMaxGroups> scales;
  // Per batch of chunks: [row of A][row of B][PlaceOf].
  alignas(64) int32_t sums[Form::kMaxGroups / Form::kLanes * kBatchSums<Form>];
};

// Chunks whose sums fill one register.
template <class Form>
constexpr int64_t kGemvBatch = Form::kLanes / Form::Kind::kGroups;

// total + the sums of a batch of kLanes rows of B and row i of A.
template <class Form>
typename Form::Kind::V::Vec GemvAddBatch(const GemvScratch<Form>& s, int64_t i, int64_t first,
                                         const int32_t* sums, typename Form::Kind::V::Vec total) {
  using Kind = typename Form::Kind;
  using V = typename Kind::V;
  constexpr int64_t kLanes = Form::kLanes;
  typename V::Ints groups[kLanes];
#pragma GCC unroll 16
  for (int64_t row = 0; row < kLanes; ++row) groups[row] = V::LoadBytes(sums + row * kLanes);
  V::Transpose(groups);
  const int64_t count = Min(kGemvBatch<Form>, s.x.chunks() - first);
#pragma GCC unroll 16
  for (int64_t c = 0; c < kGemvBatch<Form>; ++c) {
    if (c == count) break;
    const int64_t at = s.x.At(i, first + c);
    const int64_t row = (first + c) * Kind::kGroups * kLanes;
    total = AddChunk<Kind, kLanes>([&](int64_t group) { return groups[Form::PlaceOf(c, group)]; },
                                   s.x.start + at * Kind::kGroups, s.x.scale[at],
                                   s.scales.scale + (Kind::kOneScale ? 0 : row),
                                   s.scales.zero + row, total);
  }
  return total;
}

// Rows [n, +rows) of B, at most kLanes, times all kM rows of A. Prefetches the scales of the next
// rows.
template <class Form, int64_t kM>
void GemvRows(const GemmTask& t, const typename Form::Kind::T* w, int64_t n, int64_t rows,
              SequentialPrefetch& scale_prefetch, GemvScratch<Form>& s) {
  using Kind = typename Form::Kind;
  using V = typename Kind::V;
  using T = typename Kind::T;
  constexpr int64_t kLanes = Form::kLanes;
  constexpr int64_t kBatch = kGemvBatch<Form>;
  const typename Form::A& x = s.x;
  const CacheLevel level = t.tuning->prefetch_level;
  const auto sums_of = [&s](int64_t batch) {
    return s.sums + batch / kBatch * kM * kBatchSums<Form>;
  };
  const PrefetchDistance distance = SequentialDistanceOf<T>(t);
  for (int64_t row = 0; row < rows; ++row) {
    scale_prefetch.PrefetchNext();
    const T* const from = w + (n + row) * t.w_stride + x.begin / kValuesPer<T>;
    for (int64_t span = 0; span < x.chunks(); span += kLanes) {
      const int64_t ahead = Form::Ahead(t, distance, x, n + row, span);
      for (int64_t batch = span; batch < Min(span + kLanes, x.chunks()); batch += kBatch) {
        const T* const w_batch = from + batch * Kind::Layout::kRowBytes;
        const int64_t values = x.k - batch * kChunkK;
        int32_t* const to = sums_of(batch) + row * kLanes;
        if (values >= kBatch * kChunkK)
          Form::template DotBatch<kM, true>(w_batch, x, batch, values, ahead, level, to);
        else
          Form::template DotBatch<kM, false>(w_batch, x, batch, values, ahead, level, to);
      }
    }
  }
  const bool last = x.begin + x.k == t.k;
  for (int64_t i = 0; i < kM; ++i) {
    float* const y = t.y + i * t.y_stride + n;
    typename V::Vec total = InitialTotal<V>(x.begin == 0, y, rows);
    for (int64_t batch = 0; batch < x.chunks(); batch += kBatch)
      total = GemvAddBatch<Form>(s, i, batch, sums_of(batch) + i * kBatchSums<Form>, total);
    StoreTotal<Kind>(t, last, s.scales.scale, n, rows, total, y);
  }
}

template <class Form>
[[gnu::noinline]] void GemmS8GemvOf(const GemmTask& t) {
  using Kind = typename Form::Kind;
  const auto* const w = static_cast<const typename Kind::T*>(t.w);
  auto& s = ScratchAs<GemvScratch<Form>>(t.scratch);
  typename Form::A& x = s.x;
  x.rows = t.m;
  x.chunk_step = 1;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(Form::PassK(t.m), t.k - x.begin);
    x.row_step = Form::RowStep(x);
    Form::PackA(t, x);
    for (int64_t n = 0; n < t.n; n += Form::kLanes) {
      const int64_t rows = Min(Form::kLanes, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      SequentialPrefetch scale_prefetch =
          ScalePrefetchOf(t, n + rows, Form::kLanes, x.begin, x.k, rows);
      WithConstant<kMaxGemvM>(t.m, [&](auto count) {
        GemvRows<Form, decltype(count)::value>(t, w, n, rows, scale_prefetch, s);
      });
    }
  }
}

}  // namespace
}  // namespace latte::cpu
