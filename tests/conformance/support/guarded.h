// Memory that detects wrong accesses: a tensor ends at an unreadable page and begins after another
// one, and all memory that a test has not written, including padding between rows, is NaN.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include <sys/mman.h>

#include "src/base/check.h"
#include "src/base/math.h"
#include "src/kernels/ref/ref.h"
#include "src/tensor/dtype.h"
#include "src/tensor/tensor.h"

namespace latte {

class Guarded {
 public:
  // row_padding: elements between the end of a row (last dimension) and the next row. shift: bytes
  // between the tensor's end and the unreadable page, for unaligned addresses.
  Guarded(DType dtype, std::vector<int64_t> dims, int64_t row_padding = 0, int64_t shift = 0)
      : row_padding_(row_padding) {
    view_.dtype = dtype;
    view_.rank = static_cast<int>(dims.size());
    int64_t last = 0;  // index of the last element
    int64_t stride = 1;
    bool empty = false;
    for (size_t i = dims.size(); i-- > 0;) {
      view_.shape[i] = dims[i];
      view_.stride[i] = stride;
      last += (dims[i] - 1) * stride;
      stride *= dims[i];
      if (i + 1 == dims.size()) stride += row_padding;
      empty = empty || dims[i] == 0;
    }
    bytes_ = empty ? 0 : static_cast<size_t>((last + 1) * SizeOf(dtype));
    const auto inner =
        static_cast<size_t>(RoundUp(static_cast<int64_t>(bytes_) + shift, kPage) + 2 * kPage);
    mapped_ = inner;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    LATTE_CHECK(base_ != MAP_FAILED);
    if (inner > 2 * kPage)
      LATTE_CHECK(mprotect(base_ + kPage, inner - 2 * kPage, PROT_READ | PROT_WRITE) == 0);
    view_.data = base_ + inner - kPage - shift - bytes_;
    Poison();
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }

  // Every byte 0xff: a NaN in each floating-point dtype.
  void Poison() { std::memset(view_.data, 0xff, bytes_); }

  std::vector<std::byte> Bytes() const { return {view_.data, view_.data + bytes_}; }

  // Whether the memory between rows is unchanged since Poison.
  bool PaddingIsPoison() const {
    const auto width =
        static_cast<size_t>(view_.shape[static_cast<size_t>(view_.rank - 1)] * SizeOf(view_.dtype));
    const size_t step = width + static_cast<size_t>(row_padding_ * SizeOf(view_.dtype));
    for (size_t row = 0; row + step <= bytes_; row += step)
      for (size_t i = width; i < step; ++i)
        if (view_.data[row + i] != std::byte{0xff}) return false;
    return true;
  }

 private:
  static constexpr int64_t kPage = 4096;

  int64_t row_padding_ = 0;
  std::byte* base_ = nullptr;
  size_t mapped_ = 0;
  size_t bytes_ = 0;
  TensorView view_;
};

// The element at an index, as a float, for any floating-point dtype.
inline float GetValue(const TensorView& t, int64_t i, int64_t j = 0, int64_t k = 0) {
  return LoadElement(t.data, t.dtype, i * t.stride[0] + j * t.stride[1] + k * t.stride[2]);
}

// Fills rank 1, 2 or 3 with numbers between −1 and 1 (f16: all exponents from 2^−15 up).
inline void FillRandom(const TensorView& t, std::mt19937& rng) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (int64_t i = 0; i < t.shape[0]; ++i)
    for (int64_t j = 0; j < (t.rank > 1 ? t.shape[1] : 1); ++j)
      for (int64_t k = 0; k < (t.rank > 2 ? t.shape[2] : 1); ++k) {
        std::byte* at =
            t.data + (i * t.stride[0] + j * t.stride[1] + k * t.stride[2]) * SizeOf(t.dtype);
        if (t.dtype == DType::kF32) {
          const float value = uniform(rng);
          std::memcpy(at, &value, 4);
        } else {
          const uint16_t bits = t.dtype == DType::kBF16
                                    ? FloatToBF16(uniform(rng))
                                    : static_cast<uint16_t>((rng() & 0x8000u) | (rng() % 0x3c00u));
          std::memcpy(at, &bits, 2);
        }
      }
}

}  // namespace latte
