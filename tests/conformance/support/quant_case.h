// Quantised weights and activations for products, in guarded memory (guarded.h).
#pragma once

#include <cmath>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "src/kernels/params/gemm.h"
#include "tests/conformance/support/guarded.h"
#include "tests/conformance/support/shapes.h"

namespace latte {

inline constexpr int64_t kQuantPad = 6;  // elements between rows

// Blocks that share a scale; columns 0: all of K.
struct QuantBlocks {
  int64_t rows, columns, row_begin, column_begin;
  DType scale;
  bool zeros = false;
};
inline constexpr QuantBlocks kQuantBlocks[] = {
    {128, 128, 0, 0, DType::kF32},    {128, 128, 60, 32, DType::kF32},
    {1, 0, 0, 0, DType::kF32},        {1, 0, 3, 0, DType::kBF16},
    {1, 32, 0, 0, DType::kBF16},      {1, 32, 5, 64, DType::kF16},
    {1, 128, 0, 0, DType::kF16},      {3, 48, 1, 16, DType::kF32},
    {1, 32, 0, 0, DType::kF16, true}, {1, 64, 2, 128, DType::kF32, true},
    {2, 10, 1, 4, DType::kBF16},      {1, 20, 0, 0, DType::kF32},
};

struct QuantShape {
  int64_t b, m, n, k;
};
inline constexpr QuantShape kQuantShapes[] = {
    {1, 0, 8, 64},     {1, 1, 1, 1},      {3, 1, 33, 130},  {1, 2, 8, 256},   {1, 3, 5, 31},
    {1, 5, 67, 191},   {1, 1, 70, 2101},  {2, 9, 12, 576},  {1, 17, 64, 130}, {1, 40, 13, 1040},
    {1, 65, 66, 320},  {1, 7, 9, 4224},   {1, 2, 64, 4224}, {1, 7, 33, 4352}, {1, 1, 66, 2304},
    {1, 18, 64, 1152}, {1, 515, 33, 128}, {1, 3, 40, 1152}, {1, 8, 40, 1152}, {1, 14, 20, 1800},
    {1, 2, 18, 8320},
};
// Every shape with every kind of blocks.
struct QuantCase {
  QuantShape shape;
  QuantBlocks blocks;
};
inline std::vector<QuantCase> QuantCases(std::span<const QuantShape> shapes) {
  std::vector<QuantCase> out;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t j = 0; j < std::size(kQuantBlocks); ++j)
      if (IsRun(i, j, 7)) out.push_back({shapes[i], kQuantBlocks[j]});
  return out;
}

inline constexpr DType kWeightTypes[] = {DType::kF8E4M3, DType::kF8E4M3Fnuz, DType::kI8,
                                         DType::kU4};
inline constexpr DType kInputTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kI8};

inline void FillCodes(const TensorView& t, std::mt19937& rng) {
  for (int64_t i = 0; i < t.shape[0]; ++i)
    for (int64_t j = 0; j < t.shape[1]; ++j)
      for (int64_t k = 0; k < t.shape[2]; ++k) {
        auto code = static_cast<uint8_t>(rng());
        if (t.dtype == DType::kF8E4M3 && (code & 0x7f) == 0x7f) code = 0;
        if (t.dtype == DType::kF8E4M3Fnuz && code == 0x80) code = 0;
        *(t.data + i * t.stride[0] + j * t.stride[1] + k) = std::byte{code};
      }
}

// A quantised weight [B, N, K] and its scales, in guarded memory; and |W| as plain f32.
struct QuantWeight {
  QuantWeight(DType type, int64_t b, int64_t n, int64_t k, const QuantBlocks& s, std::mt19937& rng)
      : codes(type, {b, n, CeilDiv(k, ValuesPerElement(type))}, kQuantPad, /*shift=*/k % 2),
        columns(s.columns == 0 ? k + k % 2 : s.columns),
        scale(s.scale, {CeilDiv(s.row_begin + b * n, s.rows), CeilDiv(s.column_begin + k, columns)},
              3),
        magnitude(DType::kF32, {b, n, k}) {
    FillCodes(codes, rng);
    FillRandom(scale, rng);
    grid.scale = scale;
    grid.rows = s.rows;
    grid.columns = columns;
    grid.row_begin = s.row_begin;
    grid.column_begin = s.column_begin;
    grid.batch_rows = n;
    if (s.zeros && type == DType::kU4) {
      zero.emplace(DType::kU8, std::vector<int64_t>{scale.view().shape[0], scale.view().shape[1]},
                   1);
      grid.zero = *zero;
      for (int64_t i = 0; i < grid.zero.shape[0]; ++i)
        for (int64_t j = 0; j < grid.zero.shape[1]; ++j)
          grid.zero.Row<uint8_t>(i)[j] = static_cast<uint8_t>(rng() % 17);
    }
    for (int64_t i = 0; i < b; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < k; ++l)
          magnitude.Ptr<float>()[(i * n + j) * k + l] = std::abs(static_cast<float>(At(i, j, l)));
  }

  // As params/gemm.h defines it.
  double At(int64_t b, int64_t i, int64_t j) const {
    const TensorView& w = codes;
    const float value = LoadElement(w.data + b * w.stride[0] + i * w.stride[1], w.dtype, j);
    const int64_t row = (grid.row_begin + b * grid.batch_rows + i) / grid.rows;
    const int64_t column = (grid.column_begin + j) / grid.columns;
    float offset = w.dtype == DType::kU4 ? 8.0f : 0.0f;
    if (!grid.zero.empty()) offset = grid.zero.Row<uint8_t>(row)[column];
    return static_cast<double>(value - offset) *
           static_cast<double>(GetValue(grid.scale, row, column));
  }

  Guarded codes;
  int64_t columns;
  Guarded scale;
  std::optional<Guarded> zero;
  BlockScale grid;
  Tensor magnitude;  // [B, N, K] f32
};

// Activations [B, M, K], with scales if they are quantised; and |x|.
struct QuantInput {
  QuantInput(DType type, int64_t b, int64_t m, int64_t k, int64_t columns, std::mt19937& rng)
      : x(type, {b, m, k}, kQuantPad),
        scale(DType::kF32, {b, m, CeilDiv(k, columns)}, 1),
        group(columns),
        magnitude(DType::kF32, {b, m, k}) {
    if (type == DType::kI8) {
      FillCodes(x, rng);
      FillRandom(scale, rng);
    } else {
      FillRandom(x, rng);
    }
    for (int64_t i = 0; i < b; ++i)
      for (int64_t j = 0; j < m; ++j)
        for (int64_t l = 0; l < k; ++l) {
          float value = GetValue(x, i, j, l);
          if (type == DType::kI8) value *= GetValue(scale, i, j, l / group);
          magnitude.Ptr<float>()[(i * m + j) * k + l] = std::abs(value);
        }
  }

  Guarded x;
  Guarded scale;
  int64_t group;
  Tensor magnitude;
};

inline GemmProblem PartOf(const QuantInput& x, const QuantWeight& w, const TensorView& y) {
  GemmProblem p;
  p.x = x.x;
  p.w = w.codes;
  p.y = y;
  p.w_scale = w.grid;
  if (p.x.dtype == DType::kI8) {
    p.x_scale = x.scale;
    p.x_group = x.group;
  }
  return p;
}

}  // namespace latte
