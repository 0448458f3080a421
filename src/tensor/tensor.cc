#include "src/tensor/tensor.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/math.h"
#include "src/tensor/device_space.h"

namespace latte {
namespace {
constexpr int64_t kTensorAlignment = 64;
}

TensorView::TensorView(void* at, DType type, std::span<const int64_t> dims)
    : data(static_cast<std::byte*>(at)), dtype(type), rank(static_cast<int>(dims.size())) {
  LATTE_CHECK(rank <= kMaxRank, "rank {}", rank);
  std::copy(dims.begin(), dims.end(), shape.begin());
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    stride[static_cast<size_t>(d)] = step;
    step *= shape[static_cast<size_t>(d)];
  }
}

int64_t TensorView::elements() const {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= shape[static_cast<size_t>(d)];
  return n;
}

bool TensorView::contiguous() const {
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (shape[static_cast<size_t>(d)] != 1 && stride[static_cast<size_t>(d)] != step) return false;
    step *= shape[static_cast<size_t>(d)];
  }
  return true;
}

std::byte* TensorView::NthRow(int64_t i) const {
  int64_t offset = 0;
  for (int d = rank - 2; d >= 0; --d) {
    offset += i % shape[static_cast<size_t>(d)] * stride[static_cast<size_t>(d)];
    i /= shape[static_cast<size_t>(d)];
  }
  return data + offset * SizeOf(dtype);
}

TensorView TensorView::Slice(int dim, int64_t begin, int64_t end) const {
  const auto d = static_cast<size_t>(dim);
  LATTE_CHECK(dim < rank && 0 <= begin && begin <= end && end <= shape[d], "[{}, {}) of {}", begin,
              end, shape[d]);
  TensorView out = *this;
  out.data += begin * stride[d] * SizeOf(dtype);
  out.shape[d] = end - begin;
  return out;
}

TensorView TensorView::Reshape(std::initializer_list<int64_t> dims) const {
  TensorView out(data, dtype, dims);
  LATTE_CHECK(contiguous() && out.elements() == elements(), "{} elements as {}", elements(),
              out.elements());
  return out;
}

std::string ShapeString(std::span<const int64_t> dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::string ShapeString(const TensorView& view) {
  return std::string(Name(view.dtype)) +
         ShapeString(std::span(view.shape.data(), static_cast<size_t>(view.rank)));
}

Tensor::Tensor(DType dtype, std::initializer_list<int64_t> dims, const Device& device)
    : Tensor(dtype, std::span<const int64_t>(dims.begin(), dims.size()), device) {}

Tensor::Tensor(DType dtype, std::span<const int64_t> dims, const Device& device)
    : view_(nullptr, dtype, dims) {
  const int64_t size = RoundUp(std::max<int64_t>(bytes(), 1), kTensorAlignment);
  memory_ = DeviceMemory::Allocate(device, size, MemoryUse::kTensor);
  if (!memory_)
    ThrowTooLittleMemory(device, size, device.is_host() ? "a tensor" : ShapeString(view_),
                         "use smaller --max-batch-tokens or --max-sequences, a smaller cache or a "
                         "smaller model");
  view_.data = memory_->data();
}

}  // namespace latte
