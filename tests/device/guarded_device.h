// A device whose memory the host can neither read nor write, except during its ops and copies: any
// other access is a segmentation fault. It shows that code above the kernels would run on a device
// with memory of its own.
#pragma once

#include <vector>

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

  // Copies that were made since Record began, in order.
  enum class Direction { kFromHost, kToHost, kWithin };
  struct CopyRecord {
    Direction direction = Direction::kWithin;
    int64_t bytes = 0;
    bool in_pass = false;  // between the embedding and the logits (InPass)
  };
  void Record(std::vector<CopyRecord>* copies) const { copies_ = copies; }

  // A pass over the layers of a model, while it lives.
  class InPass {
   public:
    explicit InPass(const GuardedDevice& device) : device_(device) { ++device_.passes_; }
    ~InPass() { --device_.passes_; }
    InPass(const InPass&) = delete;
    InPass& operator=(const InPass&) = delete;

   private:
    const GuardedDevice& device_;
  };

 private:
  void Protect(int protection) const;
  void Note(Direction direction, int64_t bytes) const;

  std::byte* base_;
  mutable int64_t used_ = 0;
  mutable int open_ = 0;  // Access objects alive
  mutable DeviceStream expected_ = nullptr;
  mutable int64_t strays_ = 0;
  mutable int64_t accesses_ = 0;
  mutable std::vector<CopyRecord>* copies_ = nullptr;
  mutable int passes_ = 0;  // InPass objects alive
};

// The device whose memory the kernels of IsaFamily::kTest open (backends.cc).
const GuardedDevice& TestDevice();

}  // namespace latte::testing_support
