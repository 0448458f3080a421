// bf16 A × e4m3 B, micro-kernel M×4×256, vdpbf16ps, M ≤ 2, AVX512_BF16 + GFNI. The results
// are bit-identical to gemm_amx_bf16-inl.h. No AMX instructions: one row of A would leave tiles
// empty.
//
// Packing   None; B is read in place once. 32 values of each of two blocks of 128 columns form one
//           register, widened to 64 bf16 by two GF2P8AFFINEQB instructions (amx_fp8-inl.h).
// Blocking  Blocks of 32 rows of B × up to 8192 columns, K steps of 256 columns × 4 rows of B; a
//           dot product adds to 16 lanes.
// Prefetch  Each K step prefetches the lines of the next four rows to be read. The four rows are at
//           least a page apart, so each has its own hardware prefetch stream.
// Scales    Sums of a scale segment times its scale, in f32.
// Epilogue  C = sums + bias.
// Order     that of gemm_amx_bf16-inl.h.
// Limits    as gemm_amx_bf16-inl.h; M ≤ kMaxFp8GemvM.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/bf16_pair-inl.h"
#include "src/kernels/cpu/gemm/amx_weight_block-inl.h"
#include "src/kernels/cpu/isa/amx_fp8-inl.h"

namespace latte::cpu {
namespace {

constexpr int64_t kMaxFp8GemvM = 2;  // above, tiles are faster
constexpr int64_t kFp8StepK = 2 * kF8Block;
constexpr int64_t kFp8Nr = 4;
constexpr int64_t kFp8BlockK = 8192;
constexpr int64_t kFp8BlockSteps = kFp8BlockK / kFp8StepK;

struct Fp8GemvScratch {
  alignas(64) float sums[kMaxFp8GemvM][kMaxAmxN];
  alignas(64) float scale[2 * kFp8BlockSteps * kBPanelN];  // [128 columns][group][row]
  alignas(
      64) BF16 x_tail[kMaxFp8GemvM][kFp8StepK];  // behind the last whole K step, padded with zeros
  alignas(64) F8 w_tail[kFp8Nr][kFp8StepK];      // the same, padded with ones
  int64_t segments[kFp8BlockSteps];              // of each K step: 1 or 2
  const GemmTask* t;

  int64_t tail() const { return t->k / kFp8StepK * kFp8StepK; }  // its first column
};

// Chains of partial sums, [row of A][row of B].
template <int64_t kM>
struct Fp8Chains {
  AmxF8::Vec chains[kM][kFp8Nr];
};

// Four rows of B from some column.
struct Fp8Rows4 {
  const F8* w[kFp8Nr];

  Fp8Rows4 At(int64_t column) const {
    return {{w[0] + column, w[1] + column, w[2] + column, w[3] + column}};
  }
};

// 32 rows of B in groups of four rows that are as far apart as possible, each in its own page: one
// hardware prefetch stream per row.
struct Fp8Blocks {
  const GemmTask* t;
  int64_t output = 0, begin = 0;  // column

  int64_t rows() const { return Min(kBPanelN, t->n - output); }
  int64_t groups() const { return (rows() + kFp8Nr - 1) / kFp8Nr; }
  int64_t end() const { return Min(t->k, begin + kFp8BlockK); }
  // Row j of a group; missing rows read the last one again.
  int64_t RowOf(int64_t group, int64_t j) const { return Min(group + j * groups(), rows() - 1); }
  bool IsMissing(int64_t group, int64_t j) const { return group + j * groups() >= rows(); }
  Fp8Rows4 GroupAt(int64_t group) const {
    Fp8Rows4 out;
    for (int64_t j = 0; j < kFp8Nr; ++j)
      out.w[j] = static_cast<const F8*>(t->w) + (output + RowOf(group, j)) * t->w_stride + begin;
    return out;
  }
  bool done() const { return output >= t->n; }
  // The next block, along K first.
  Fp8Blocks Next() const {
    if (end() < t->k) return {t, output, end()};
    return {t, output + kBPanelN, 0};
  }
  // The group that is read after `group`, perhaps of the next task.
  Fp8Rows4 After(int64_t group) const {
    if (group + 1 < groups()) return GroupAt(group + 1);
    if (const Fp8Blocks next = Next(); !next.done()) return next.GroupAt(0);
    return t->next == nullptr ? GroupAt(group) : Fp8Blocks{t->next}.GroupAt(0);
  }
};

// Prefetches a quarter of the lines of a K step: two neighbouring lines of each of two rows.
inline void PrefetchQuarterStep(const Fp8Rows4& ahead, int64_t quarter) {
  for (int64_t j = quarter % 2 * 2; j < quarter % 2 * 2 + 2; ++j)
    for (int64_t line = 0; line < 2; ++line) PrefetchL2(ahead.w[j], quarter / 2 * 128 + line * 64);
}

// A K step of four rows of B times kM rows of A.
template <int64_t kM>
inline Fp8Chains<kM> ChainsOf(const Fp8Rows4& w, const BF16* const (&x)[kM], const Fp8Rows4& ahead,
                              const AmxF8::Constants& constants) {
  Fp8Chains<kM> out;
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t j = 0; j < kFp8Nr; ++j) out.chains[m][j] = AmxF8::Zero();
  ForEachIndex<kF8Steps>([&](auto i) {
    constexpr int64_t kAt = decltype(i)::value * kStep;
    PrefetchQuarterStep(ahead, i.value);
    AmxF8::Codes codes[kFp8Nr];
    AmxF8::Outliers outliers = AmxF8::NoOutliers();
    for (int64_t j = 0; j < kFp8Nr; ++j) {
      codes[j] = AmxF8::LoadCodes(w.w[j] + kAt, w.w[j] + kF8Block + kAt);
      outliers = AmxF8::Either(outliers, AmxF8::OutliersOf(codes[j], constants));
    }
    AmxF8::Halves wide[kFp8Nr];
    for (int64_t j = 0; j < kFp8Nr; ++j) wide[j] = AmxF8::WidenNormals(codes[j], constants);
    if (AmxF8::AnyOutlier(outliers, constants)) [[unlikely]]
      for (int64_t j = 0; j < kFp8Nr; ++j) wide[j] = AmxF8::WidenAny(codes[j]);
    for (int64_t m = 0; m < kM; ++m) {
      const AmxF8::Halves xi =
          AmxF8::HalvesOf(AmxF8::LoadPairs(x[m] + kAt), AmxF8::LoadPairs(x[m] + kF8Block + kAt));
      for (int64_t j = 0; j < kFp8Nr; ++j) {
        out.chains[m][j] = AmxF8::DotPairs(out.chains[m][j], wide[j].low, xi.low);
        out.chains[m][j] = AmxF8::DotPairs(out.chains[m][j], wide[j].high, xi.high);
      }
    }
  });
  return out;
}

// total + the sums of a K step times the scales of its one or two segments.
inline AmxF8::Vec AddScaled(const AmxF8::Vec (&chains)[kFp8Nr], const float* scale,
                            int64_t segments, AmxF8::Vec total) {
  if (segments == 1) return AmxF8::Fma(AmxF8::SumBothBlocks(chains), AmxF8::LoadRows(scale), total);
  const AmxF8::Vec sums = AmxF8::SumBlocks(chains);
  total = AmxF8::Fma(sums, AmxF8::LoadRows(scale), total);
  return AmxF8::Fma(AmxF8::SecondRows(sums), AmxF8::LoadRows(scale + kBPanelN), total);
}

// Reorders the scales of 128 columns of a block by groups.
inline void OrderScales(const Fp8Blocks& block, float* scale) {
  float rows[kBPanelN];
  __builtin_memcpy(rows, scale, sizeof(rows));
  for (int64_t group = 0; group < block.groups(); ++group)
    for (int64_t j = 0; j < kFp8Nr; ++j) scale[group * kFp8Nr + j] = rows[block.RowOf(group, j)];
}

inline void PrepareScales(Fp8GemvScratch& s, const Fp8Blocks& block) {
  const ScaleGrid& g = s.t->grid;
  const int64_t columns = block.end() - block.begin;
  LoadGroupScales<Avx512Vnni, kF8Block, kBPanelN>(g, block.output, block.rows(), block.begin,
                                                  columns, s.scale);
  if (GridRow(g, block.output) != GridRow(g, block.output + block.rows() - 1))
    for (int64_t at = 0; at < columns; at += kF8Block)
      OrderScales(block, s.scale + at / kF8Block * kBPanelN);
  for (int64_t at = 0; at < columns; at += kFp8StepK) {
    const int64_t k = block.begin + at;
    const bool two = at + kF8Block < columns && GridColumn(g, k) != GridColumn(g, k + kF8Block);
    s.segments[at / kFp8StepK] = two ? 2 : 1;
  }
}

// Adds a block of a group to its totals.
template <int64_t kM>
inline void MultiplyGroup(Fp8GemvScratch& s, const Fp8Blocks& block, int64_t group,
                          const AmxF8::Constants& constants, AmxF8::Vec (&totals)[kM]) {
  const GemmTask& t = *s.t;
  const Fp8Rows4 w = block.GroupAt(group);
  const Fp8Rows4 ahead = block.After(group);
  const BF16* x[kM];
  for (int64_t m = 0; m < kM; ++m)
    x[m] = static_cast<const BF16*>(t.x) + m * t.x_stride + block.begin;
  const float* scale = s.scale + group * kFp8Nr;
  const auto add = [&](const Fp8Chains<kM>& step, int64_t index) {
    for (int64_t m = 0; m < kM; ++m)
      totals[m] = AddScaled(step.chains[m], scale, s.segments[index], totals[m]);
    scale += 2 * kBPanelN;
  };
  const int64_t columns = block.end() - block.begin;
  int64_t at = 0;
  for (; at + kFp8StepK <= columns; at += kFp8StepK) {
    add(ChainsOf<kM>(w.At(at), x, ahead.At(at), constants), at / kFp8StepK);
    for (int64_t m = 0; m < kM; ++m) x[m] += kFp8StepK;
  }
  if (at == columns) return;
  Fp8Rows4 tail;
  for (int64_t j = 0; j < kFp8Nr; ++j) {
    AmxF8::CopyCodes(w.w[j] + at, columns - at, kFp8StepK, s.w_tail[j]);
    tail.w[j] = s.w_tail[j];
  }
  for (int64_t m = 0; m < kM; ++m) x[m] = s.x_tail[m];
  add(ChainsOf<kM>(tail, x, ahead.At(at), constants), at / kFp8StepK);
}

template <int64_t kM>
inline void Fp8Block(Fp8GemvScratch& s, const Fp8Blocks& block) {
  PrepareScales(s, block);
  const AmxF8::Constants constants = AmxF8::MakeConstants();
  for (int64_t group = 0; group < block.groups(); ++group) {
    float sums[kM][kFp8Nr];
    for (int64_t m = 0; m < kM; ++m)
      for (int64_t j = 0; j < kFp8Nr; ++j)
        sums[m][j] = block.begin == 0 ? 0 : s.sums[m][block.output + block.RowOf(group, j)];
    AmxF8::Vec totals[kM];
    for (int64_t m = 0; m < kM; ++m) totals[m] = AmxF8::LoadRows(sums[m]);
    MultiplyGroup<kM>(s, block, group, constants, totals);
    for (int64_t m = 0; m < kM; ++m) AmxF8::StoreRows(sums[m], totals[m]);
    // The sums of a missing row are dropped: stored, they would enter the last row's sums once
    // more.
    for (int64_t m = 0; m < kM; ++m)
      for (int64_t j = 0; j < kFp8Nr; ++j)
        if (!block.IsMissing(group, j))
          s.sums[m][block.output + block.RowOf(group, j)] = sums[m][j];
  }
}

template <int64_t kM>
inline void Fp8GemvRows(Fp8GemvScratch& s) {
  const GemmTask& t = *s.t;
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t at = 0; at < kFp8StepK; at += kStep) {
      const auto* const x = static_cast<const BF16*>(t.x) + m * t.x_stride;
      const int64_t left = t.k - s.tail() - at;
      AmxF8::StorePairs(s.x_tail[m] + at, left > 0 ? LoadRowPairs<AmxF8>(x, s.tail() + at, t.k)
                                                   : AmxF8::LoadPairsPartial(x, 0));
    }
  for (Fp8Blocks block{&t}; !block.done(); block = block.Next()) Fp8Block<kM>(s, block);
}

// Requires: A is bf16; B is e4m3, scale groups begin at multiples of 128; M ≤ kMaxFp8GemvM.
inline void GemmAmxFp8Gemv(const GemmTask& t) {
  Fp8GemvScratch s;
  s.t = &t;
  WithConstant<kMaxFp8GemvM>(t.m, [&](auto rows) { Fp8GemvRows<decltype(rows)::value>(s); });
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
