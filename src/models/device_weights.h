// The weights of a model that lie on a device: copies of tensors in the mapped files.
#pragma once

#include <deque>

#include "src/tensor/transfer.h"

namespace latte {

// Thread-compatible. The device must outlive it.
class DeviceWeights {
 public:
  explicit DeviceWeights(const Device& device) : device_(&device) {}

  const Device& device() const { return *device_; }

  // A tensor of host memory on the device: itself if that is the host, else a copy, which lives as
  // long as this object. Throws OutOfMemory.
  TensorView Place(const TensorView& host) {
    if (device_->is_host() || host.empty()) return host;
    return copies_.emplace_back(CopyToDevice(host, *device_));
  }
  // The same for a tensor that its holder keeps.
  Tensor PlaceOwned(Tensor host) const {
    return device_->is_host() ? std::move(host) : CopyToDevice(host, *device_);
  }

 private:
  const Device* device_;
  std::deque<Tensor> copies_;
};

}  // namespace latte
