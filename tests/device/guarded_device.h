// A device whose memory the host can neither read nor write, except during its ops and copies: any
// other access is a segmentation fault. It shows that code above the kernels would run on a device
// with memory of its own.
#pragma once

#include "src/tensor/device.h"

namespace latte::testing_support {

// One engine at a time. Its memory is one mapping, taken from its begin to its end.
class GuardedDevice final : public Device {
 public:
  GuardedDevice();
  ~GuardedDevice() override;

  // Makes the memory accessible while it lives, as an op or a copy does.
  class Access {
   public:
    Access(const GuardedDevice& device, DeviceStream stream);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    const GuardedDevice& device_;
  };

  std::byte* Allocate(int64_t bytes, MemoryUse use) const override;
  void Free(std::byte* at, int64_t bytes, MemoryUse use) const override;
  void CopyFromHost(std::byte* to, const void* from, int64_t bytes, DeviceStream) const override;
  void CopyToHost(void* to, const std::byte* from, int64_t bytes, DeviceStream) const override;
  void Copy(std::byte* to, const std::byte* from, int64_t bytes, DeviceStream) const override;

  bool Holds(const void* at) const;

  // The stream that ops and copies are expected on. `strays` counts those on another one.
  void Expect(DeviceStream stream) const { expected_ = stream; }
  int64_t strays() const { return strays_; }
  int64_t accesses() const { return accesses_; }
  int64_t copies_to_host() const { return copies_to_host_; }

 private:
  void Protect(int protection) const;

  std::byte* base_;
  mutable int64_t used_ = 0;
  mutable int open_ = 0;  // Access objects alive
  mutable DeviceStream expected_ = nullptr;
  mutable int64_t strays_ = 0;
  mutable int64_t accesses_ = 0;
  mutable int64_t copies_to_host_ = 0;
};

// The device whose memory the kernels of IsaFamily::kTest open (backends.cc).
const GuardedDevice& TestDevice();

}  // namespace latte::testing_support
