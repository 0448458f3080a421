// clang-format off
// mha, f32: tiles of kPanelRows × kPanelVectors vectors (AVX-512 6 × 64, AVX2 6 × 16), FMA; up to
// 192 queries of one head per task, causal by position. mha_bf16-inl.h uses the same code.
//
// Packing    Keys and values, once per block of 128 keys, for all queries of the task:
//
//              keys    column = key, step = dimension (transposed)       step 0 │ c0 c1 c2 … │
//              values  column = dimension, step = key                    step 1 │ c0 c1 c2 … │
//
// Blocking   Scores and values are both rows × panel in outer form: one broadcast per row and step,
//            no reduction across lanes. Tiles above the diagonal are skipped. Outputs stay in
//            scratch, because rows of o lie a power of two apart and would share a few cache sets.
// Order      Keys in index order, blocks anchored at absolute position 0; a call may begin inside
//            of a block. How queries are divided into calls and tasks changes no byte.
// Limits     N+R ≤ 512, V ≤ 512; scratch 1.4 MiB (bf16: 1.9 MiB).
// clang-format on
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/online_softmax-inl.h"
#include "src/kernels/cpu/common/scratch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Keys per block: twice as many as in absorbed attention, so that outputs are loaded and stored
// half as often.
constexpr int64_t kMhaBlock = 128;

// The operations that MhaWith needs of an arithmetic, here f32.
template <class V>
struct F32Arithmetic {
  using Vector = V;
  using Element = float;                // of rows and panels
  static constexpr int64_t kTerms = 1;  // terms of a sum per panel step
  static constexpr int64_t kBlock = kMhaBlock;
  static constexpr int64_t kQueries = kMaxQueries;  // of a task
  static constexpr int64_t kRows = V::kPanelRows;   // of a tile
  static constexpr int64_t kVectors = V::kPanelVectors;
  static constexpr int64_t kPanelColumns = kVectors * V::kLanes;  // columns of a panel

  struct Product {
    const float* x;
    int64_t x_stride;
    const float* panel;
    int64_t terms;
    const float* factor;  // null: y starts from zero
    float* y;
    int64_t y_stride;
  };
  // y[i,:] = factor[i]·y[i,:] + Σ x[i,n]·panel[n,:] for kM rows and kN vectors.
  template <int64_t kM, int64_t kN>
  static void Multiply(const Product& p) {
    OuterTile<V, kM, kN>(
        Outer<float>{p.x, p.x_stride, p.panel, kPanelColumns, p.terms, p.factor, p.y, p.y_stride},
        V::kLanes);
  }
  static void PackRow(const float* x, int64_t count, float* to) { WidenRow<V>(x, count, to); }
  // Scores to unnormalised probabilities in the type that Multiply takes, [rows, kBlock]. scratch
  // has room for them.
  template <class Rows>
  static const float* Probabilities(Rows& a, float* /*scratch*/) {
    Softmax<V>(a);
    return a.p;
  }
  // Transposes kLanes rows × kTransposed columns into kLanes steps of one vector of a panel.
  static void PackTransposed(const float* rows, int64_t stride, float* panel) {
    typename V::Vec block[V::kLanes];
    for (int64_t i = 0; i < V::kLanes; ++i) block[i] = V::Load(rows + i * stride);
    V::Transpose(block);
    for (int64_t i = 0; i < V::kLanes; ++i) V::Store(panel + i * kPanelColumns, block[i]);
  }
  static constexpr int64_t kTransposed = V::kLanes;  // columns per call of PackTransposed
  // Packs the values of `keys` ≤ kTerms keys as one panel step.
  static void PackValues(const float* v, int64_t /*v_stride*/, int64_t /*keys*/, int64_t columns,
                         float* panel, int64_t panel_stride) {
    for (int64_t i = 0; i < columns; i += V::kLanes)
      V::Store(panel + i / kPanelColumns * panel_stride + i % kPanelColumns,
               LoadNext<V>(v + i, columns - i));
  }
};

template <class A>
struct MhaScratch {
  static constexpr int64_t kMaxStride = ScratchStride(kMaxHeadWidth);
  using Element = typename A::Element;
  alignas(64) Element q[A::kQueries * kMaxStride];
  alignas(64) Element k[A::kBlock * kMaxStride];
  alignas(64) Element v[A::kBlock * kMaxStride];
  alignas(64) Element p[kMaxRows * A::kBlock];
  // Keys of one panel vector, before they are packed.
  alignas(64) float keys[A::Vector::kLanes * kMaxStride];
  alignas(64) float o[A::kQueries * kMaxStride];  // not normalised
  float max[A::kQueries];
  float sum[A::kQueries];
  int64_t q_stride, o_stride;
  int64_t k_panel, v_panel;      // elements of a panel
  const Element* probabilities;  // [rows of a group, kBlock]
};

// row = [first | second], zeros behind it up to a multiple of kTransposed.
template <class A>
void JoinRow(const float* first, int64_t first_width, const float* second, int64_t second_width,
             float* row) {
  using V = typename A::Vector;
  WidenRow<V>(first, first_width, row);
  WidenRow<V>(second, second_width, row + first_width);
  const int64_t width = first_width + second_width;
  for (int64_t i = width; i % A::kTransposed != 0; ++i) row[i] = 0.0f;
}

template <class A>
void PackQueries(const MhaTask& t, MhaScratch<A>& s) {
  for (int64_t i = 0; i < t.rows; ++i) {
    JoinRow<A>(t.q_nope + i * t.q_nope_stride, t.n, t.q_rope + i * t.q_rope_stride, t.r, s.keys);
    A::PackRow(s.keys, t.n + t.r, s.q + i * s.q_stride);
  }
}

// Copies up to kLanes keys from `key` to scratch, nope and rope parts joined; zero rows behind the
// last key.
template <class A>
void JoinKeys(const MhaTask& t, int64_t key, int64_t count, int64_t stride, MhaScratch<A>& s) {
  for (int64_t i = 0; i < A::Vector::kLanes; ++i) {
    float* const row = s.keys + i * stride;
    if (i < count)
      JoinRow<A>(t.k_nope + (key + i) * t.k_nope_stride, t.n,
                 t.k_rope + (key + i) * t.k_rope_stride, t.r, row);
    else
      for (int64_t c = 0; c < stride; ++c) row[c] = 0.0f;
  }
}

// Packs one vector of a panel from kLanes whole keys and a multiple of kTransposed columns.
template <class A>
void PackPart(const float* part, int64_t stride, int64_t width, typename A::Element* panel) {
  for (int64_t c = 0; c < width; c += A::kTransposed)
    A::PackTransposed(part + c, stride, panel + c * A::kPanelColumns);
}

// Packs keys [begin, begin + count). Columns behind the last key are zero up to a whole vector.
template <class A>
void PackKeys(const MhaTask& t, int64_t begin, int64_t count, MhaScratch<A>& s) {
  constexpr int64_t kLanes = A::Vector::kLanes;
  const int64_t width = RoundUp(t.n + t.r, A::kTransposed);
  const bool whole_columns = t.n % A::kTransposed == 0 && t.r % A::kTransposed == 0;
  for (int64_t j = 0; j < count; j += kLanes) {
    const int64_t key = begin + j;
    auto* const panel = s.k + j / A::kPanelColumns * s.k_panel + j % A::kPanelColumns * A::kTerms;
    if (whole_columns && j + kLanes <= count) {
      PackPart<A>(t.k_nope + key * t.k_nope_stride, t.k_nope_stride, t.n, panel);
      PackPart<A>(t.k_rope + key * t.k_rope_stride, t.k_rope_stride, t.r,
                  panel + t.n * A::kPanelColumns);
      continue;
    }
    const int64_t stride = ScratchStride(width);
    JoinKeys(t, key, count - j, stride, s);
    PackPart<A>(s.keys, stride, width, panel);
  }
}

template <class A>
void PackBlock(const MhaTask& t, int64_t begin, int64_t count, MhaScratch<A>& s) {
  PackKeys(t, begin, count, s);
  for (int64_t j = 0; j < count; j += A::kTerms)
    A::PackValues(t.v + (begin + j) * t.v_stride, t.v_stride, Min(A::kTerms, count - j), t.v_width,
                  s.v + j / A::kTerms * A::kPanelColumns * A::kTerms, s.v_panel);
}

// Scores of the rows of `a`, which start at row `first`, up to the last key that a row of each tile
// sees.
template <class A>
void PanelScores(const MhaScratch<A>& s, int64_t first, AttentionRows<A::kBlock>& a) {
  for (int64_t key = 0; key < A::kBlock; key += A::kPanelColumns)
    ForEachRun<A::kRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      const int64_t seen = a.visible[row + kM - 1] - key;  // later queries see more
      if (seen <= 0) return;
      constexpr int64_t kLanes = A::Vector::kLanes;
      WithConstant<A::kVectors>(Min((seen + kLanes - 1) / kLanes, A::kVectors), [&](auto vectors) {
        A::template Multiply<kM, decltype(vectors)::value>(
            {s.q + (first + row) * s.q_stride, s.q_stride, s.k + key / A::kPanelColumns * s.k_panel,
             a.width, nullptr, a.p + row * A::kBlock + key, A::kBlock});
      });
    });
}

// o = factor·o + P·V for kM rows from `row` and kN vectors from `column`.
template <class A, int64_t kM, int64_t kN>
void AddPanel(const MhaScratch<A>& s, const AttentionRows<A::kBlock>& a, int64_t row,
              int64_t column) {
  static constexpr float kOne = 1.0f;
  const typename A::Element* const panel =
      s.v + column / A::kPanelColumns * s.v_panel + column % A::kPanelColumns * A::kTerms;
  const int64_t common = Max(a.visible[row], 0) / A::kTerms * A::kTerms;
  A::template Multiply<kM, kN>({s.probabilities + row * A::kBlock, A::kBlock, panel, common,
                                a.factor + row, a.o + row * a.o_stride + column, a.o_stride});
  // Keys that not all rows of the tile see.
  for (int64_t i = row; i < row + kM; ++i)
    if (a.visible[i] > common)
      A::template Multiply<1, kN>({s.probabilities + i * A::kBlock + common, A::kBlock,
                                   panel + common * A::kPanelColumns, a.visible[i] - common, &kOne,
                                   a.o + i * a.o_stride + column, a.o_stride});
}

template <class A>
void AddPackedValues(MhaScratch<A>& s, const AttentionRows<A::kBlock>& a) {
  constexpr int64_t kLanes = A::Vector::kLanes;
  for (int64_t column = 0; column < a.v_width; column += A::kPanelColumns)
    ForEachRun<A::kRows>(a.rows, [&](int64_t row, auto rows) {
      constexpr int64_t kM = decltype(rows)::value;
      const int64_t columns = Min(A::kPanelColumns, a.v_width - column);
      WithConstant<A::kVectors>((columns + kLanes - 1) / kLanes, [&](auto vectors) {
        AddPanel<A, kM, decltype(vectors)::value>(s, a, row, column);
      });
    });
}

// Attends with rows [first, first + rows) to the packed block of `count` keys from `begin`.
template <class A>
void AttendGroup(const MhaTask& t, int64_t begin, int64_t count, int64_t first, int64_t rows,
                 MhaScratch<A>& s, AttentionRows<A::kBlock>& a) {
  a.rows = rows;
  a.o = s.o + first * s.o_stride;
  for (int64_t i = 0; i < rows; ++i) {
    a.visible[i] = Min(count, t.q_begin + first + i + 1 - (t.key_begin + begin));
    a.max[i] = s.max[first + i];
    a.sum[i] = s.sum[first + i];
  }
  if (a.visible[rows - 1] <= 0) return;
  PanelScores<A>(s, first, a);
  s.probabilities = A::Probabilities(a, s.p);
  AddPackedValues<A>(s, a);
  for (int64_t i = 0; i < rows; ++i) {
    s.max[first + i] = a.max[i];
    s.sum[first + i] = a.sum[i];
  }
}

// Writes row i of the output.
template <class A>
void FinishRow(const MhaTask& t, MhaScratch<A>& s, int64_t i, AttentionRows<A::kBlock>& a) {
  a.o = s.o + i * s.o_stride;
  a.max[0] = s.max[i];
  a.sum[0] = s.sum[i];
  t.lse[i * t.lse_stride] = Finish<typename A::Vector>(a, 0);
  WidenRow<typename A::Vector>(a.o, t.v_width, t.o + i * t.o_stride);
}

template <class A>
void MhaWith(const MhaTask& t) {
  constexpr int64_t kGroup = kMaxRows / A::kRows * A::kRows;
  auto& s = ScratchAs<MhaScratch<A>>(t.scratch);
  const int64_t width = t.n + t.r;
  s.q_stride = ScratchStride(RoundUp(width, A::kTransposed));
  s.o_stride = ScratchStride(t.v_width);
  s.k_panel = RoundUp(width, A::kTransposed) * A::kPanelColumns;
  s.v_panel = A::kBlock * A::kPanelColumns;
  PackQueries<A>(t, s);
  for (int64_t i = 0; i < t.rows; ++i) {
    s.max[i] = -__builtin_inff();
    s.sum[i] = 0.0f;
    for (int64_t j = 0; j < s.o_stride; ++j) s.o[i * s.o_stride + j] = 0.0f;
  }

  AttentionRows<A::kBlock> a;
  a.width = width;
  a.v_width = t.v_width;
  a.o_stride = s.o_stride;
  a.scale = t.scale;
  // Keys that the last row sees; earlier rows see fewer.
  const int64_t end = Min(t.keys, t.q_begin + t.rows - t.key_begin);
  for (int64_t begin = 0; begin < end;) {
    const int64_t block_end = A::kBlock - (t.key_begin + begin) % A::kBlock;
    const int64_t count = Min(block_end, end - begin);
    PackBlock<A>(t, begin, count, s);
    for (int64_t row = 0; row < t.rows; row += kGroup)
      AttendGroup<A>(t, begin, count, row, Min(kGroup, t.rows - row), s, a);
    begin += count;
  }
  for (int64_t i = 0; i < t.rows; ++i) FinishRow<A>(t, s, i, a);
}

template <class V>
void Mha(const MhaTask& t) {
  MhaWith<F32Arithmetic<V>>(t);
}

}  // namespace
}  // namespace latte::cpu
