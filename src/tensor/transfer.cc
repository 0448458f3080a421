#include "src/tensor/transfer.h"

namespace latte {

Tensor CopyToDevice(const TensorView& host, const Device& device) {
  const auto rank = static_cast<size_t>(host.rank);
  Tensor out(host.dtype, std::span(host.shape.data(), rank), device);
  if (out.bytes() == 0) return out;
  const int64_t row_bytes =
      host.contiguous() ? out.bytes() : host.shape[rank - 1] * SizeOf(host.dtype);
  for (int64_t i = 0; i < out.bytes() / row_bytes; ++i)
    device.CopyFromHost(out.view().data + i * row_bytes, host.NthRow(i), row_bytes, nullptr);
  return out;
}

TensorView HostView(const TensorView& t, const Device& device, DeviceStream stream,
                    Tensor& buffer) {
  if (device.is_host()) return t;
  const int64_t bytes = t.elements() * SizeOf(t.dtype);
  if (buffer.view().empty() || buffer.bytes() < bytes) buffer = Tensor(DType::kU8, {bytes});
  device.CopyToHost(buffer.view().data, t.data, bytes, stream);
  return TensorView(buffer.view().data, t.dtype,
                    std::span(t.shape.data(), static_cast<size_t>(t.rank)));
}

}  // namespace latte
