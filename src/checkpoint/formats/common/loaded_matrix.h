// A matrix as kernels read it, the result of loading any format. Only this file and
// kernels/params/gemm.h know where values, scales and zero points are. A format with another layout
// gets its fields here, and the functions of this file then hold for it too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/tensor/dtype.h"
#include "src/tensor/tensor.h"

namespace latte {

// Values of a whole matrix or of a part of it, with the scales and zero points of the whole matrix.
// Views into the mapped checkpoint, or into `owned`.
struct LoadedMatrix {
  TensorView
      weight;  // [N, K], [N, K/2] bytes of kU4, or [N, K/values] blocks, which have their scales
               // inside; last dimension contiguous, any alignment
  TensorView scale;  // [⌈rows/block_rows⌉, ⌈columns/block_columns⌉] f32, bf16 or f16 of the whole
                     // matrix; empty: plain
  TensorView zero;           // u8 of the same shape; empty: DTypeInfo::zero of the type
  int64_t block_rows = 128;  // rows and columns that share a scale
  int64_t block_columns = 128;
  int64_t row_begin = 0;  // where `weight` begins in the whole matrix
  int64_t column_begin = 0;
  std::vector<Tensor> owned;  // memory of views that loading converted or repacked

  int64_t rows() const { return weight.shape[0]; }
  int64_t columns() const { return weight.shape[1] * ValuesPerElement(weight.dtype); }
  // Of values, and of the scales and zero points of their blocks.
  int64_t bytes() const;
  // Integers of 4 or 8 bits.
  bool is_integer() const { return InfoOf(weight.dtype).use == DTypeUse::kScaledInt; }

  // Stores `tensor` with the matrix and returns a view of it.
  TensorView Own(Tensor tensor);

  // Keeps rows or columns [begin, end) of those that are here, as a view.
  void KeepRows(int64_t begin, int64_t end);
  void KeepColumns(int64_t begin, int64_t end);
  // Rows [begin, end) of those that are here. This matrix must outlive them.
  LoadedMatrix ViewOfRows(int64_t begin, int64_t end) const;
  // The columns at which a part may begin and end are multiples of it: they split no byte, no block
  // and no group of integers. 1: any column.
  int64_t ColumnUnit() const;
  // Frees the rows that are not kept, if loading made a copy of all.
  void FreeOtherRows();

  // Whether one call can multiply both, one as the gate of the other: plain numbers and blocks of
  // any types, or numbers with scales in one format.
  bool IsReadWith(const LoadedMatrix& other) const;
  // "i8 in blocks of 1x128 with zeros", "q4_k", for messages.
  std::string FormatText() const;

  // Row i of those that are here as f32, with its scales and zero points. Requires: all columns are
  // here.
  void ReadRow(int64_t i, float* out) const;
};

}  // namespace latte
