// Ops before and after the layers of a step: they keep rows on the device, check rows, and move
// pages.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/tensor/tensor.h"

namespace latte {

// finite[m] = 1 if all of x[m,:] is finite, else 0.
struct FiniteRowsOp {
  static constexpr std::string_view kName = "finite_rows";
  struct Params {
    TensorView x;               // [M, D] f32, last dimension contiguous
    std::span<int32_t> finite;  // [M], written
  };
  struct Shape {
    int64_t m, d;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1]}; }
};

// y[slots[m],:] = x[m,:] for every slot that is not negative: the hidden states from which drafts
// are made later. Other rows of y keep their values. No slot is given twice.
struct PackDraftsOp {
  static constexpr std::string_view kName = "pack_drafts";
  struct Params {
    TensorView x;                    // [M, D] f32, last dimension contiguous
    std::span<const int32_t> slots;  // [M], each below S
    TensorView y;                    // [S, D] f32, written, last dimension contiguous
  };
  struct Shape {
    int64_t m, d;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.x.shape[0], p.x.shape[1]}; }
};

// Copies one cache page of all layers of a stream, to another page or between the page and
// contiguous memory, where the layers follow one another.
struct CopyPageOp {
  static constexpr std::string_view kName = "copy_page";
  struct Params {
    std::span<const TensorView> layers;  // on the host; each [pages, P, width], contiguous
    int32_t from = -1;                   // page that is read; −1: reads `packed`
    int32_t to = -1;                     // page that is written; −1: writes `packed`
    std::span<std::byte> packed = {};    // layers · bytes of a page
  };
  struct Shape {
    int64_t layers, page_bytes;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    const TensorView& first = p.layers.front();
    return {static_cast<int64_t>(p.layers.size()),
            first.shape[1] * first.shape[2] * SizeOf(first.dtype)};
  }
};

}  // namespace latte
