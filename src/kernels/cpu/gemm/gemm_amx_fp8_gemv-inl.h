// One or two rows of x times fp8 weights with scales, bit for bit what gemm_amx_bf16-inl.h adds for
// more of them.
//
// Work      32 outputs × up to 8192 columns are a block, four outputs × 256 columns a step: 32
//           codes of each of two blocks of 128 are one vector, widened to 64 bf16 by two affine
//           transformations of their bits, and a dot product of pairs adds them to 16 chains
//           (amx_fp8-inl.h). W is read once, where it lies; what the next four outputs read is
//           asked for meanwhile.
// Roofline  memory. A line of W costs about 4 ns in the core, 17 vector instructions, where to lay
//           it out for a tile that has one row to multiply takes 8.
// Order     as in gemm_amx_bf16-inl.h.
// Limits    as there; m ≤ kF8Rows.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/gemm/amx_weight_block-inl.h"
#include "src/kernels/cpu/isa/amx_fp8-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kF8Rows = 2;  // of x; more cost more than on tiles
constexpr int64_t kF8Columns = 2 * kF8Block;
constexpr int64_t kF8Outputs = 4;
constexpr int64_t kF8BlockColumns = 8192;
constexpr int64_t kF8BlockSteps = kF8BlockColumns / kF8Columns;

struct F8Product {
  alignas(64) float sums[kF8Rows][kMaxTileOutputs];
  alignas(64) float scale[2 * kF8BlockSteps * kBytePanelRows];  // [128 columns][group][output]
  alignas(64) BF16 x_tail[kF8Rows][kF8Columns];   // behind the last whole step, then zeros
  alignas(64) F8 w_tail[kF8Outputs][kF8Columns];  // likewise, then ones
  int64_t segments[kF8BlockSteps];                // of each step: 1 or 2
  const LinearTask* t;

  int64_t tail() const { return t->k / kF8Columns * kF8Columns; }  // its first column
};

// Chains of each row of x and each output.
template <int64_t kM>
struct F8Chains {
  AmxF8::Vec chains[kM][kF8Outputs];
};

// Rows of four outputs from some column on.
struct F8Group {
  const F8* w[kF8Outputs];

  F8Group At(int64_t column) const {
    return {{w[0] + column, w[1] + column, w[2] + column, w[3] + column}};
  }
};

// 32 outputs, in groups of four that are as far from each other as can be, each in a page of its
// own: memory is faster so, and what a group reads next lies behind what it reads.
struct F8Blocks {
  const LinearTask* t;
  int64_t output = 0, begin = 0;  // column

  int64_t rows() const { return Min(kBytePanelRows, t->n - output); }
  int64_t groups() const { return (rows() + kF8Outputs - 1) / kF8Outputs; }
  int64_t end() const { return Min(t->k, begin + kF8BlockColumns); }
  // Of member j of a group; there may be fewer outputs than members.
  int64_t RowOf(int64_t group, int64_t j) const { return Min(group + j * groups(), rows() - 1); }
  F8Group GroupAt(int64_t group) const {
    F8Group out;
    for (int64_t j = 0; j < kF8Outputs; ++j)
      out.w[j] = static_cast<const F8*>(t->w) + (output + RowOf(group, j)) * t->w_stride + begin;
    return out;
  }
  bool done() const { return output >= t->n; }
  // The block after: along the columns first.
  F8Blocks Next() const {
    if (end() < t->k) return {t, output, end()};
    return {t, output + kBytePanelRows, 0};
  }
  // What is read first after a group of this block, perhaps of another task.
  F8Group After(int64_t group) const {
    if (group + 1 < groups()) return GroupAt(group + 1);
    if (const F8Blocks next = Next(); !next.done()) return next.GroupAt(0);
    return t->next == nullptr ? GroupAt(group) : F8Blocks{t->next}.GroupAt(0);
  }
};

// Asks for a quarter of a step's lines: two of each of two outputs, since memory answers two
// neighbours faster than one.
inline void AskQuarter(const F8Group& ahead, int64_t quarter) {
  for (int64_t j = quarter % 2 * 2; j < quarter % 2 * 2 + 2; ++j)
    for (int64_t line = 0; line < 2; ++line) Prefetch(ahead.w[j], quarter / 2 * 128 + line * 64);
}

// The step of `w` times that of kM rows of x.
template <int64_t kM>
inline F8Chains<kM> ChainsOf(const F8Group& w, const BF16* const (&x)[kM], const F8Group& ahead,
                             const AmxF8::Constants& constants) {
  F8Chains<kM> out;
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t j = 0; j < kF8Outputs; ++j) out.chains[m][j] = AmxF8::Zero();
  ForEachIndex<kF8Steps>([&](auto i) {
    constexpr int64_t kAt = decltype(i)::value * kStep;
    AskQuarter(ahead, i.value);
    AmxF8::Codes codes[kF8Outputs];
    AmxF8::Outliers outliers = AmxF8::NoOutliers();
    for (int64_t j = 0; j < kF8Outputs; ++j) {
      codes[j] = AmxF8::LoadCodes(w.w[j] + kAt, w.w[j] + kF8Block + kAt);
      outliers = AmxF8::Either(outliers, AmxF8::OutliersOf(codes[j], constants));
    }
    AmxF8::Halves wide[kF8Outputs];
    for (int64_t j = 0; j < kF8Outputs; ++j) wide[j] = AmxF8::WidenNormals(codes[j], constants);
    if (AmxF8::AnyOutlier(outliers, constants)) [[unlikely]]
      for (int64_t j = 0; j < kF8Outputs; ++j) wide[j] = AmxF8::WidenAny(codes[j]);
    for (int64_t m = 0; m < kM; ++m) {
      const AmxF8::Halves xi =
          AmxF8::HalvesOf(AmxF8::LoadPairs(x[m] + kAt), AmxF8::LoadPairs(x[m] + kF8Block + kAt));
      for (int64_t j = 0; j < kF8Outputs; ++j) {
        out.chains[m][j] = AmxF8::DotPairs(out.chains[m][j], wide[j].low, xi.low);
        out.chains[m][j] = AmxF8::DotPairs(out.chains[m][j], wide[j].high, xi.high);
      }
    }
  });
  return out;
}

// total + the sums of a step, times the scales of its one or two segments.
inline AmxF8::Vec AddScaled(const AmxF8::Vec (&chains)[kF8Outputs], const float* scale,
                            int64_t segments, AmxF8::Vec total) {
  if (segments == 1) return AmxF8::Fma(AmxF8::SumBothBlocks(chains), AmxF8::LoadRows(scale), total);
  const AmxF8::Vec sums = AmxF8::SumBlocks(chains);
  total = AmxF8::Fma(sums, AmxF8::LoadRows(scale), total);
  return AmxF8::Fma(AmxF8::SecondRows(sums), AmxF8::LoadRows(scale + kBytePanelRows), total);
}

// Puts the scales of 128 columns of a block's rows into the order of groups.
inline void OrderScales(const F8Blocks& block, float* scale) {
  float rows[kBytePanelRows];
  __builtin_memcpy(rows, scale, sizeof(rows));
  for (int64_t group = 0; group < block.groups(); ++group)
    for (int64_t j = 0; j < kF8Outputs; ++j)
      scale[group * kF8Outputs + j] = rows[block.RowOf(group, j)];
}

inline void PrepareScales(F8Product& s, const F8Blocks& block) {
  const ScaleGrid& g = s.t->grid;
  const int64_t columns = block.end() - block.begin;
  PrepareRunScales<Avx512Vnni, kF8Block, kBytePanelRows>(g, block.output, block.rows(), block.begin,
                                                         columns, s.scale);
  if (GridRow(g, block.output) != GridRow(g, block.output + block.rows() - 1))
    for (int64_t at = 0; at < columns; at += kF8Block)
      OrderScales(block, s.scale + at / kF8Block * kBytePanelRows);
  for (int64_t at = 0; at < columns; at += kF8Columns) {
    const int64_t k = block.begin + at;
    const bool two = at + kF8Block < columns && GridColumn(g, k) != GridColumn(g, k + kF8Block);
    s.segments[at / kF8Columns] = two ? 2 : 1;
  }
}

// A group's totals of all rows of x, before and after this block.
template <int64_t kM>
inline void MultiplyGroup(F8Product& s, const F8Blocks& block, int64_t group,
                          const AmxF8::Constants& constants, AmxF8::Vec (&totals)[kM]) {
  const LinearTask& t = *s.t;
  const F8Group w = block.GroupAt(group);
  const F8Group ahead = block.After(group);
  const BF16* x[kM];
  for (int64_t m = 0; m < kM; ++m)
    x[m] = static_cast<const BF16*>(t.x) + m * t.x_stride + block.begin;
  const float* scale = s.scale + group * kF8Outputs;
  const auto add = [&](const F8Chains<kM>& step, int64_t index) {
    for (int64_t m = 0; m < kM; ++m)
      totals[m] = AddScaled(step.chains[m], scale, s.segments[index], totals[m]);
    scale += 2 * kBytePanelRows;
  };
  const int64_t columns = block.end() - block.begin;
  int64_t at = 0;
  for (; at + kF8Columns <= columns; at += kF8Columns) {
    add(ChainsOf<kM>(w.At(at), x, ahead.At(at), constants), at / kF8Columns);
    for (int64_t m = 0; m < kM; ++m) x[m] += kF8Columns;
  }
  if (at == columns) return;
  F8Group tail;
  for (int64_t j = 0; j < kF8Outputs; ++j) {
    AmxF8::CopyCodes(w.w[j] + at, columns - at, kF8Columns, s.w_tail[j]);
    tail.w[j] = s.w_tail[j];
  }
  for (int64_t m = 0; m < kM; ++m) x[m] = s.x_tail[m];
  add(ChainsOf<kM>(tail, x, ahead.At(at), constants), at / kF8Columns);
}

template <int64_t kM>
inline void MultiplyF8Block(F8Product& s, const F8Blocks& block) {
  PrepareScales(s, block);
  const AmxF8::Constants constants = AmxF8::MakeConstants();
  for (int64_t group = 0; group < block.groups(); ++group) {
    float sums[kM][kF8Outputs];
    const auto for_each = [&](const auto& f) {
      for (int64_t m = 0; m < kM; ++m)
        for (int64_t j = 0; j < kF8Outputs; ++j)
          f(sums[m][j], s.sums[m][block.output + block.RowOf(group, j)]);
    };
    AmxF8::Vec totals[kM];
    for_each([&](float& sum, float before) { sum = block.begin == 0 ? 0 : before; });
    for (int64_t m = 0; m < kM; ++m) totals[m] = AmxF8::LoadRows(sums[m]);
    MultiplyGroup<kM>(s, block, group, constants, totals);
    for (int64_t m = 0; m < kM; ++m) AmxF8::StoreRows(sums[m], totals[m]);
    for_each([](float sum, float& after) { after = sum; });
  }
}

template <int64_t kM>
inline void MultiplyF8Rows(F8Product& s) {
  const LinearTask& t = *s.t;
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t at = 0; at < kF8Columns; at += kStep) {
      const auto* const x = static_cast<const BF16*>(t.x) + m * t.x_stride;
      const int64_t left = t.k - s.tail() - at;
      AmxF8::StorePairs(s.x_tail[m] + at, left > 0 ? LoadPairsOf<AmxF8>(x, s.tail() + at, t.k)
                                                   : AmxF8::LoadPairsPartial(x, 0));
    }
  for (F8Blocks block{&t}; !block.done(); block = block.Next()) MultiplyF8Block<kM>(s, block);
}

// Requires: x is bf16, w F8 with scales that change at multiples of 128, m ≤ kF8Rows.
inline void LinearF8Rows(const LinearTask& t) {
  F8Product s;
  s.t = &t;
  WithConstant<kF8Rows>(t.m, [&](auto rows) { MultiplyF8Rows<decltype(rows)::value>(s); });
  for (int64_t m = 0; m < t.m; ++m)
    for (int64_t i = 0; i < t.n; i += Amx::kLanes) {
      const Amx::Vec sums = Amx::Load(s.sums[m] + i);
      StoreNext<Amx>(t.y + m * t.y_stride + i,
                     t.bias == nullptr ? sums : Amx::Add(sums, LoadNext<Amx>(t.bias + i, t.n - i)),
                     t.n - i);
    }
}

}  // namespace
}  // namespace latte::cpu
