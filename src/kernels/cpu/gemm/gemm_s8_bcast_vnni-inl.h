// Up to 64 rows of x and W of 8 bits for gemm_s8_vnni-inl.h: lanes are rows of x, and rows of W are
// read where they lie or where a chunk of them was copied, four bytes of one in every lane.
//
//   x  [16 rows][chunk][step: 4 columns][row of x][column]      a vector: 4 columns of 16 rows
//
// Work      a step multiplies four bytes of each row of W by a vector of x or more. Sums over lanes
//           are not needed, and a sum becomes f32 once per chunk. Results of 48 rows of W stay
//           near, and are turned when a pass ends. Two ways:
//             held    6, 6, 4 and 3 rows of W where they lie beside 16, 32, 48 and 64 of x, over
//                     all whole chunks of a pass: sums and totals stay in registers, x comes from
//                     the L2. Zen 4, all in the L2: 0.97 of the peak; tiles below, of which totals
//                     wait in memory: 0.92.
//             copied  a chunk of 12, 12, 8 and 6 rows, copied as unsigned bytes: what is left at
//                     the edges, and all of it where memory likes many streams.
// Order     as int8_scales-inl.h says, the bits of other rows of x.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/prefetch_sequential-inl.h"
#include "src/kernels/cpu/common/prefetch_strided-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/gemm/s8_chunk-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxInputs = 64;               // rows of x
constexpr int64_t kInputPanel = 48;              // rows of W
constexpr int64_t kInputColumns = 4096;          // of a pass
constexpr int64_t kInputAhead = 256;             // bytes that a row asks ahead for itself
constexpr int64_t kInputVector = 4 * kSumLanes;  // bytes
constexpr int64_t kChunkFours = kByteChunk / 4;  // steps of a chunk
// Rows of W of a copied and of a held tile of as many vectors of rows of x: what registers hold,
// and of one vector what the L1 holds where rows lie half a page, or a page, apart.
template <int64_t kVectors>
constexpr int64_t kInputRows = kVectors == 1 ? 12 : 24 / kVectors;
template <int64_t kVectors>
constexpr int64_t kHeldRows = kVectors == 1 ? 6 : 12 / kVectors;
constexpr int64_t kMaxInputRows = 12;

// A chunk of 16 rows of x; behind the last one there are zeros.
struct InputChunk {
  alignas(64) int8_t codes[kChunkFours][kInputVector];
  int32_t start[kSumLanes];  // what sums start from
  float scale[kSumLanes];
};

// Columns [begin, +k) of a task's x, `rows` rows in kVectors · 16 lanes.
template <int64_t kVectors>
struct InputLanes {
  const InputChunk* chunk[kVectors];  // the first of each 16 rows
  int64_t begin, k, rows;

  int64_t chunks() const { return (k + kByteChunk - 1) / kByteChunk; }
};

struct InputScratch {
  ByteRunScales<kInputPanel, kInputColumns / kByteChunk> scales;
  alignas(64) float totals[kInputPanel][kMaxInputs];
  alignas(64) char chunk[kMaxInputRows][kByteChunk];  // of rows, copied
};

// Prepares 16 rows of x beside W of 8 bits, chunk by chunk.
template <class V>
void PackInputs(const PackTask& t) {
  auto* to = static_cast<InputChunk*>(t.packed);
  for (int64_t k = 0; k < t.k; k += kByteChunk, ++to) {
    typename V::Ints halves[2][kSumLanes];
    for (int64_t i = 0; i < kSumLanes; ++i) {
      to->scale[i] = 0;
      halves[0][i] = halves[1][i] = V::ZeroInts();
      if (i >= t.rows) continue;
      typename V::Ints values[2];
      LoadValues<V>(static_cast<const int8_t*>(t.x) + i * t.x_stride + k, t.k - k, values);
      for (int64_t half = 0; half < 2; ++half) halves[half][i] = values[half];
      to->scale[i] = t.x_scale[i * t.x_scale_stride + k / t.x_group];
    }
    typename V::Ints sum = V::ZeroInts();
    for (int64_t half = 0; half < 2; ++half) {
      V::Transpose(halves[half]);
      for (int64_t i = 0; i < kSumLanes; ++i) {
        V::StoreBytes(to->codes[half * kSumLanes + i], halves[half][i]);
        sum = V::AddInts(sum, V::SumBytes(halves[half][i]));
      }
    }
    V::StoreBytes(to->start, V::TimesInt(sum, -ByteOrder<V, I8>::kZero));
  }
}

// A row of kN that lie `stride` bytes apart. Addresses are spelled out, or g++ 12 keeps one for
// each row.
template <class V, int64_t kN>
class NearRows {
 public:
  NearRows(const char* first, int64_t stride) : stride_(stride), three_(V::Opaque(3 * stride)) {
    for (int64_t i = 0; i < kFours; ++i) rows_[i] = V::Opaque(first + 4 * i * stride);
  }

  const char* operator[](int64_t i) const {
    return rows_[i / 4] + (i % 4 == 3 ? three_ : i % 4 * stride_);
  }
  void Advance(int64_t bytes) {
    for (const char*& row : rows_) row = V::Opaque(row + bytes);
  }

 private:
  static constexpr int64_t kFours = (kN + 3) / 4;

  const char* rows_[kFours];
  int64_t stride_, three_;
};

template <class V, int64_t kN, int64_t kVectors>
[[gnu::always_inline]] inline void StartSums(const InputChunk* const (&x)[kVectors],
                                             typename V::Ints (&sums)[kN][kVectors]) {
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    const typename V::Ints from = V::LoadBytes(x[v]->start);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kN; ++i) sums[i][v] = from;
  }
}

// Adds a step. kUnsigned: W's bytes are 128 larger already.
template <class V, bool kUnsigned, int64_t kN, int64_t kVectors>
[[gnu::always_inline]] inline void AddStep(NearRows<V, kN>& w,
                                           const InputChunk* const (&x)[kVectors], int64_t step,
                                           typename V::Ints (&sums)[kN][kVectors]) {
  typename V::Ints xv[kVectors];
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) xv[v] = V::LoadBytes(x[v]->codes[step]);
#pragma GCC unroll 12
  for (int64_t i = 0; i < kN; ++i) {
    typename V::Ints wi = V::SetFour(w[i]);
    if constexpr (!kUnsigned) wi = V::FlipSigns(wi);
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) sums[i][v] = V::DotBytes(sums[i][v], wi, xv[v]);
  }
  w.Advance(4);
}

// total + a chunk of row i of W and vector v of x.
template <class Kind>
[[gnu::always_inline]] inline typename Kind::V::Vec AddInputChunk(typename Kind::V::Ints sum,
                                                                  const float* w_scale,
                                                                  typename Kind::V::Vec x_scale,
                                                                  typename Kind::V::Vec total) {
  using V = typename Kind::V;
  return AddChunkOf<V, Kind::kOneScale, 1>([&](int64_t) { return V::ToFloat(sum); },
                                           [&](int64_t) { return V::Set1(*w_scale); }, x_scale,
                                           total);
}

template <class Kind>
const float* ChunkScales(const InputScratch& s, int64_t chunk, int64_t n) {
  return s.scales.scale + (Kind::kOneScale ? 0 : chunk * kInputPanel) + n;
}

// Chunks [0, count) of kN rows of W, `stride` bytes apart, which are rows [n, +kN) of the panel,
// and all of x. Lines `ahead` bytes behind each row are asked for.
template <class Kind, int64_t kN, int64_t kVectors>
[[gnu::noinline]] void MultiplyHeld(const char* w, int64_t stride, int64_t ahead, Cache into,
                                    const InputLanes<kVectors>& x, int64_t count, int64_t n,
                                    InputScratch& s) {
  using V = typename Kind::V;
  constexpr int64_t kLineSteps = kInputVector / 4;
  typename V::Vec totals[kN][kVectors];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kN; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) totals[i][v] = V::Load(s.totals[n + i] + v * kSumLanes);
  NearRows<V, kN> rows(w, stride);
  const InputChunk* inputs[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) inputs[v] = x.chunk[v];
#pragma GCC unroll 1
  for (int64_t chunk = 0; chunk < count; ++chunk) {
    typename V::Ints sums[kN][kVectors];
    StartSums<V>(inputs, sums);
#pragma GCC unroll 1
    for (int64_t step = 0; step < kChunkFours; ++step) {
      if (step % kLineSteps == 0) {
#pragma GCC unroll 6
        for (int64_t i = 0; i < kN; ++i) AskFor(rows[i], ahead, into);
        asm volatile("");  // g++ 12 drops what does nothing but this
      }
      AddStep<V, false>(rows, inputs, step, sums);
    }
    const float* const scale = ChunkScales<Kind>(s, chunk, n);
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      const typename V::Vec x_scale = V::Load(inputs[v]->scale);
#pragma GCC unroll 6
      for (int64_t i = 0; i < kN; ++i)
        totals[i][v] = AddInputChunk<Kind>(sums[i][v], scale + i, x_scale, totals[i][v]);
      ++inputs[v];
    }
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kN; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) V::Store(s.totals[n + i] + v * kSumLanes, totals[i][v]);
}

// The copied chunk of kN rows of W, which are rows [n, +kN) of the panel, and all of x; lines are
// asked for.
template <class Kind, int64_t kN, int64_t kVectors>
[[gnu::noinline]] void MultiplyCopied(LineRuns::Run ahead, const InputLanes<kVectors>& x,
                                      InputScratch& s, int64_t chunk, int64_t n) {
  using V = typename Kind::V;
  const InputChunk* inputs[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) inputs[v] = x.chunk[v] + chunk;
  typename V::Ints sums[kN][kVectors];
  StartSums<V>(inputs, sums);
  NearRows<V, kN> rows(s.chunk[0], kByteChunk);
#pragma GCC unroll 1
  for (int64_t step = 0; step < kChunkFours; ++step) {
    for (int64_t i = step; i < ahead.count; i += kChunkFours) ahead.Ask(i);
    AddStep<V, true>(rows, inputs, step, sums);
  }
  const float* const scale = ChunkScales<Kind>(s, chunk, n);
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    const typename V::Vec x_scale = V::Load(inputs[v]->scale);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kN; ++i) {
      float* const total = s.totals[n + i] + v * kSumLanes;
      V::Store(total, AddInputChunk<Kind>(sums[i][v], scale + i, x_scale, V::Load(total)));
    }
  }
}

// Copies a chunk of kN rows as unsigned bytes. If `rows` are fewer, the last of them is there
// again; of a chunk `values` are there. Each row asks for its own lines `behind` it, unless that is
// zero.
template <class V, int64_t kN>
void CopyChunk(const char* w, int64_t stride, int64_t rows, int64_t values, int64_t behind,
               InputScratch& s) {
  const bool whole = values >= kByteChunk;
  for (int64_t i = 0; i < kN; ++i, w += i < rows ? stride : 0)
    for (int64_t at = 0; at < kByteChunk; at += kInputVector) {
      const typename V::Ints bytes =
          whole ? V::LoadBytes(w + at)
                : V::LoadBytesPartial(w + at, Max(0, Min(values - at, kInputVector)));
      if (behind != 0) PrefetchNear(w + at, behind);
      V::StoreBytes(s.chunk[i] + at, V::FlipSigns(bytes));
    }
}

// Totals of rows [n, +rows) of W where a pass begins: lanes are rows of x. What a pass ends with
// stores them far apart, and is faster where their lines are near.
template <class V, int64_t kVectors>
void FirstInputTotals(const LinearTask& t, const InputLanes<kVectors>& x, int64_t n, int64_t rows,
                      InputScratch& s) {
  for (int64_t m = 0; m < kVectors * kSumLanes; m += kSumLanes)
    for (int64_t i = 0; i < rows; i += kSumLanes) {
      typename V::Vec block[kSumLanes];
      for (int64_t j = 0; j < kSumLanes; ++j) block[j] = V::Zero();
      if (x.begin > 0) {
        for (int64_t j = 0; j < Min(kSumLanes, x.rows - m); ++j)
          block[j] = LoadNext<V>(t.y + (m + j) * t.y_stride + n + i, rows - i);
        V::Transpose(block);
      }
      for (int64_t j = 0; j < kSumLanes; ++j) V::Store(s.totals[i + j] + m, block[j]);
    }
  for (int64_t m = 0; m < x.rows; ++m)
    for (int64_t i = 0; i < rows; i += kSumLanes) AskToWrite(t.y + m * t.y_stride + n + i);
}

template <class Kind, int64_t kVectors>
void StoreInputTotals(const LinearTask& t, const InputLanes<kVectors>& x, int64_t n, int64_t rows,
                      const InputScratch& s) {
  using V = typename Kind::V;
  const bool last = x.begin + x.k == t.k;
  for (int64_t m = 0; m < kVectors * kSumLanes; m += kSumLanes)
    for (int64_t i = 0; i < rows; i += kSumLanes) {
      typename V::Vec block[kSumLanes];
      for (int64_t j = 0; j < kSumLanes; ++j) block[j] = V::Load(s.totals[i + j] + m);
      V::Transpose(block);
      for (int64_t j = 0; j < Min(kSumLanes, x.rows - m); ++j)
        StoreTotal<Kind>(t, last, s.scales.scale + i, n + i, rows - i, block[j],
                         t.y + (m + j) * t.y_stride + n + i);
    }
}

// What is asked for while a panel is multiplied: of the next one, or by each row for itself.
struct InputAhead {
  LineRuns lines;  // of copied chunks
  SideAhead own;
  bool by_rows = false;
  int64_t held = 0;  // bytes from a held row to the one that takes its place
};

// Rows of W as they lie. Where a processor has two ports for all that vectors do, and with them
// slow pairs and many streams, making each four of bytes unsigned costs as much as a product: there
// chunks are copied first, unsigned, 64 bytes at a time.
template <class Kind, int64_t kVectors>
void MultiplyInputPanel(const LinearTask& t, const InputLanes<kVectors>& x, int64_t n, int64_t rows,
                        InputAhead ahead, InputScratch& s) {
  constexpr int64_t kN = kInputRows<kVectors>;
  constexpr int64_t kHeld = kHeldRows<kVectors>;
  FirstInputTotals<typename Kind::V>(t, x, n, rows, s);
  const char* const from = static_cast<const char*>(t.w) + n * t.w_stride + x.begin;
  const int64_t held_rows = t.many_streams ? 0 : rows / kHeld * kHeld;
  const int64_t whole = x.k / kByteChunk;
  for (int64_t i = 0; i < held_rows; i += kHeld)
    MultiplyHeld<Kind, kHeld>(from + i * t.w_stride, t.w_stride, ahead.held, t.ask_into, x, whole,
                              i, s);
  const int64_t calls = x.chunks() * ((rows + kN - 1) / kN);
  const int64_t lines = ahead.lines.Even(ahead.lines.lines() / calls + 1);
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const int64_t values = x.k - chunk * kByteChunk;
    const int64_t behind = ahead.by_rows ? ahead.own.Of(x.begin + chunk * kByteChunk) : 0;
    for (int64_t i = chunk < whole ? held_rows : 0; i < rows; i += kN) {
      const char* const w = from + i * t.w_stride + chunk * kByteChunk;
      CopyChunk<typename Kind::V, kN>(w, t.w_stride, rows - i, values, behind, s);
      MultiplyCopied<Kind, kN>(ahead.lines.Next(lines), x, s, chunk, i);
    }
  }
  StoreInputTotals<Kind>(t, x, n, rows, s);
}

// Of the panel that begins at row n.
template <int64_t kVectors>
InputAhead InputAheadOf(const LinearTask& t, const InputLanes<kVectors>& x, int64_t n,
                        int64_t rows) {
  InputAhead out;
  // Behind the last panel of this pass comes the first of the next one.
  const bool passes_on = n + rows == t.n && x.begin + x.k < t.k;
  const int64_t next_n = passes_on ? 0 : n + rows;
  const int64_t next_k = passes_on ? x.begin + x.k : x.begin;
  const auto at = [&t](int64_t row, int64_t column) { return row * t.w_stride + column; };
  if (!t.many_streams) {
    const char* const from = static_cast<const char*>(t.w) + at(n, x.begin);
    if (next_n < t.n)
      out.held = at(next_n, next_k) - at(n, x.begin);
    else if (t.next != nullptr)
      out.held = static_cast<const char*>(t.next->w) - from;
  } else if (t.w_stride >= kPage) {  // shorter ones are faster in order
    out.by_rows = true;
    out.own = SideAheadOf<I8>(t, n, rows, x.begin, x.k, kInputAhead);
  } else {
    out.lines =
        LinesOfRows<I8, LineRuns>(t, next_n, kInputPanel, next_k, kInputColumns, t.ask_into);
  }
  return out;
}

// Rows of x from a multiple of 16 of the task's on, as PackInputs leaves them.
template <class Kind, int64_t kVectors>
void MultiplyByInputs(const LinearTask& t, const InputChunk* packed) {
  InputLanes<kVectors> x;
  InputScratch s;
  const int64_t row_chunks = (t.k + kByteChunk - 1) / kByteChunk;
  x.rows = t.m;
  for (x.begin = 0; x.begin < t.k; x.begin += x.k) {
    x.k = Min(kInputColumns, t.k - x.begin);
    for (int64_t v = 0; v < kVectors; ++v)
      x.chunk[v] = packed + v * row_chunks + x.begin / kByteChunk;
    for (int64_t n = 0; n < t.n; n += kInputPanel) {
      const int64_t rows = Min(kInputPanel, t.n - n);
      PrepareScales<Kind>(t, n, rows, x.begin, x.k, s.scales);
      MultiplyInputPanel<Kind>(t, x, n, rows, InputAheadOf(t, x, n, rows), s);
    }
  }
}

// Whether rows of x leave an eighth of their lanes empty at most.
constexpr bool FillLanes(int64_t m) {
  const int64_t lanes = (m + kSumLanes - 1) / kSumLanes * kSumLanes;
  return 8 * m >= 7 * lanes;
}

// Groups of up to 64 packed rows of x, as even as lanes allow.
template <class Kind>
void MultiplyByGroups(const LinearTask& task) {
  LinearTask t = task;
  t.next = &task;
  const auto* const packed = static_cast<const InputChunk*>(task.packed);
  const int64_t row_chunks = (task.k + kByteChunk - 1) / kByteChunk;
  const int64_t groups = (task.m + kMaxInputs - 1) / kMaxInputs;
  const int64_t rows = ((task.m + groups - 1) / groups + kSumLanes - 1) / kSumLanes * kSumLanes;
  for (int64_t m = 0; m < task.m; m += rows) {
    t.y = task.y + m * task.y_stride;
    t.m = Min(rows, task.m - m);
    if (m + rows >= task.m) t.next = task.next;
    WithConstant<kMaxInputs / kSumLanes>((t.m + kSumLanes - 1) / kSumLanes, [&](auto vectors) {
      MultiplyByInputs<Kind, decltype(vectors)::value>(t, packed + m / kSumLanes * row_chunks);
    });
  }
}

}  // namespace
}  // namespace latte::cpu
