// Weights and activations of products, of every type, as f32. Only this file decodes them.
#pragma once

#include "src/kernels/cuda/common/elements.cuh"
#include "src/kernels/cuda/params/gemm.h"
#include "src/tensor/weight_blocks.h"

namespace latte::cuda {

// The bytes of a block, for the decoders of weight_blocks.h.
struct GlobalBytes {
  const uint8_t* at;

  LATTE_DEVICE uint8_t operator[](int i) const { return LoadGlobal(at + i); }
  LATTE_DEVICE GlobalBytes operator+(int i) const { return {at + i}; }
};

template <class Block>
LATTE_DEVICE float LoadFromBlock(const uint8_t* row, int64_t i) {
  return blocks::ValueAt<Block>(GlobalBytes{row + i / Block::kValues * Block::kBytes},
                                static_cast<int>(i % Block::kValues));
}

// Value i of a row, without a scale that lies elsewhere. Requires: a type of weights or
// activations.
LATTE_DEVICE float LoadNumber(const void* row, Element type, int64_t i) {
  const uint8_t* const bytes = static_cast<const uint8_t*>(row);
  switch (type) {
    case Element::kF8E4M3:
      return F8E4M3ToFloat(LoadGlobal(bytes + i));
    case Element::kF8E4M3Fnuz:
      return F8E4M3FnuzToFloat(LoadGlobal(bytes + i));
    case Element::kI8:
      return static_cast<float>(static_cast<int8_t>(LoadGlobal(bytes + i)));
    case Element::kU4:
      return static_cast<float>(LoadGlobal(bytes + i / 2) >> i % 2 * 4 & 15);
    case Element::kQ4_0:
      return LoadFromBlock<blocks::Q4_0>(bytes, i);
    case Element::kQ4_1:
      return LoadFromBlock<blocks::Q4_1>(bytes, i);
    case Element::kQ5_0:
      return LoadFromBlock<blocks::Q5_0>(bytes, i);
    case Element::kQ5_1:
      return LoadFromBlock<blocks::Q5_1>(bytes, i);
    case Element::kQ8_0:
      return LoadFromBlock<blocks::Q8_0>(bytes, i);
    case Element::kQ2_K:
      return LoadFromBlock<blocks::Q2_K>(bytes, i);
    case Element::kQ3_K:
      return LoadFromBlock<blocks::Q3_K>(bytes, i);
    case Element::kQ4_K:
      return LoadFromBlock<blocks::Q4_K>(bytes, i);
    case Element::kQ5_K:
      return LoadFromBlock<blocks::Q5_K>(bytes, i);
    case Element::kQ6_K:
      return LoadFromBlock<blocks::Q6_K>(bytes, i);
    case Element::kIQ4_NL:
      return LoadFromBlock<blocks::IQ4_NL>(bytes, i);
    case Element::kIQ4_XS:
      return LoadFromBlock<blocks::IQ4_XS>(bytes, i);
    case Element::kMXFP4:
      return LoadFromBlock<blocks::MXFP4>(bytes, i);
    default:
      return LoadElement(row, type, i);
  }
}

// A row of a weight, and the row of blocks with its scales.
struct WeightRow {
  const uint8_t* data;
  const void* scale;    // at the first one of the row of blocks; null: scale 1
  const uint8_t* zero;  // the same
  int32_t column_begin, columns;
  Element type, scale_type;
};

// Row n of W[b].
LATTE_DEVICE WeightRow RowOf(const WeightPointers& w, const WeightLayout& l, int64_t b, int64_t n) {
  WeightRow out = {};
  out.data = static_cast<const uint8_t*>(w.data) + b * l.batch_bytes + n * l.row_bytes;
  out.type = l.type;
  if (w.scale == nullptr) return out;
  const int64_t block_row = (l.row_begin + b * l.batch_rows + n) / l.rows;
  out.scale =
      static_cast<const uint8_t*>(w.scale) + block_row * l.scale_stride * BytesOf(l.scale_type);
  if (w.zero != nullptr) out.zero = w.zero + block_row * l.zero_stride;
  out.column_begin = l.column_begin;
  out.columns = l.columns;
  out.scale_type = l.scale_type;
  return out;
}

// Element k of the row, (value − zero) · scale, rounded once.
LATTE_DEVICE float WeightAt(const WeightRow& w, int64_t k) {
  const float value = LoadNumber(w.data, w.type, k);
  if (w.scale == nullptr) return value;
  const int64_t column = (w.column_begin + k) / w.columns;
  float zero = w.type == Element::kU4 ? 8.0f : 0.0f;
  if (w.zero != nullptr) zero = static_cast<float>(LoadGlobal(w.zero + column));
  return Mul(Sub(value, zero), LoadElement(w.scale, w.scale_type, column));
}

// A row of activations.
struct ActivationRow {
  const void* data;
  const float* scale;  // of int8
  int32_t group;
  Element type;
};

// Row m of x[b].
LATTE_DEVICE ActivationRow RowOf(const ActivationParams& x, int64_t b, int64_t m) {
  ActivationRow out = {};
  out.data = static_cast<const uint8_t*>(x.data) + (b * x.batch + m * x.stride) * BytesOf(x.type);
  if (x.scale != nullptr) out.scale = x.scale + b * x.scale_batch + m * x.scale_stride;
  out.group = x.group;
  out.type = x.type;
  return out;
}

// Activation k, rounded once if it has a scale.
LATTE_DEVICE float ActivationAt(const ActivationRow& x, int k) {
  if (x.type != Element::kI8) return LoadElement(x.data, x.type, k);
  const float code = static_cast<float>(LoadGlobal(static_cast<const int8_t*>(x.data) + k));
  return Mul(code, LoadGlobal(x.scale + k / x.group));
}

}  // namespace latte::cuda
