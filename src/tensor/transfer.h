// Copies of tensors and arrays between the host and a device.
#pragma once

#include <span>
#include <vector>

#include "src/tensor/device.h"
#include "src/tensor/tensor.h"

namespace latte {

// A contiguous copy on `device` of a tensor in host memory, for weights. Requires: the last
// dimension is contiguous. Throws OutOfMemory.
Tensor CopyToDevice(const TensorView& host, const Device& device);

// `values` of a device in host memory.
template <class T>
std::vector<T> CopyToHost(std::span<T> values, const Device& device, DeviceStream stream) {
  std::vector<T> out(values.size());
  device.CopyToHost(out.data(), reinterpret_cast<const std::byte*>(values.data()),
                    static_cast<int64_t>(values.size_bytes()), stream);
  return out;
}

// `t` in host memory: t itself if the device is the host, else a copy in `buffer`, which grows when
// it is too small. Requires: t is contiguous.
TensorView HostView(const TensorView& t, const Device& device, DeviceStream stream, Tensor& buffer);

}  // namespace latte
