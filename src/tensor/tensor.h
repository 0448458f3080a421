// Bytes with a dtype, a shape and strides. TensorView never owns; Tensor owns memory of a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "src/base/check.h"
#include "src/tensor/device.h"
#include "src/tensor/dtype.h"

namespace latte {

inline constexpr int kMaxRank = 5;

// A view of an n-dimensional array, rank ≤ 5. Strides count elements. Each user documents whether
// it writes: views of mapped weights point to read-only pages. Only ops read and write elements,
// for they may lie on a device; on the host anybody may.
struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape = {};
  std::array<int64_t, kMaxRank> stride = {};

  TensorView() = default;
  // A contiguous, row-major view.
  TensorView(void* at, DType type, std::initializer_list<int64_t> dims)
      : TensorView(at, type, std::span<const int64_t>(dims.begin(), dims.size())) {}
  TensorView(void* at, DType type, std::span<const int64_t> dims);

  bool empty() const { return data == nullptr || elements() == 0; }
  int64_t elements() const;
  bool contiguous() const;

  // Elements as T, whose size must be that of the dtype. Row(i): row i of a tensor with contiguous
  // inner dimensions.
  template <class T>
  T* Ptr() const {
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  T* Row(int64_t i) const {
    return reinterpret_cast<T*>(data) + i * stride[0];
  }
  std::byte* RowBytes(int64_t i) const { return data + i * stride[0] * SizeOf(dtype); }
  // Row i of all rows of the last dimension in row-major order, for any rank.
  std::byte* NthRow(int64_t i) const;

  // The part [begin, end) of dimension `dim`.
  TensorView Slice(int dim, int64_t begin, int64_t end) const;
  // The same elements under another shape. Requires: contiguous(), equal element count.
  TensorView Reshape(std::initializer_list<int64_t> dims) const;
};

std::string ShapeString(std::span<const int64_t> dims);  // "[3, 64]"
std::string ShapeString(const TensorView& view);         // "bf16[3, 64]"

// Owns 64-byte aligned memory of a device, which must outlive it. Movable only.
class Tensor {
 public:
  Tensor() = default;
  // Zero-filled. Throws OutOfMemory (src/base/limits/out_of_memory.h).
  Tensor(DType dtype, std::initializer_list<int64_t> dims, const Device& device = HostDevice());
  Tensor(DType dtype, std::span<const int64_t> dims, const Device& device = HostDevice());

  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }
  template <class T>
  T* Ptr() const {
    return view_.Ptr<T>();
  }
  int64_t bytes() const { return view_.elements() * SizeOf(view_.dtype); }

 private:
  std::optional<DeviceMemory> memory_;
  TensorView view_;
};

}  // namespace latte
