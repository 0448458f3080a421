#include "src/models/device_weights.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/file.h"
#include "src/base/math.h"
#include "src/tensor/device_space.h"
#include "src/tensor/transfer.h"

namespace latte {
namespace {

// The bytes of a contiguous tensor.
std::span<const std::byte> BytesOf(const TensorView& tensor) {
  return {tensor.data, static_cast<size_t>(tensor.elements() * SizeOf(tensor.dtype))};
}

int64_t BytesInArena(const TensorView& tensor) {
  const int64_t bytes = tensor.elements() * SizeOf(tensor.dtype);
  return RoundUp(std::max<int64_t>(bytes, 1), DeviceWeights::kAlignment);
}

}  // namespace

// A piece of memory as a device of its own, whose allocations follow each other in it and are freed
// with it.
class DeviceWeights::Arena final : public Device {
 public:
  Arena(const Device& device, DeviceMemory memory)
      : Device(device.kind(), device.ordinal()), device_(device), memory_(std::move(memory)) {}

  int64_t left() const { return memory_.bytes() - used_; }

  std::byte* Allocate(int64_t bytes, MemoryUse) const override {
    bytes = RoundUp(bytes, kAlignment);
    LATTE_CHECK(bytes <= left(), "an arena with {} bytes left, for {}", left(), bytes);
    return memory_.data() + std::exchange(used_, used_ + bytes);
  }
  void Free(std::byte*, int64_t, MemoryUse) const override {}

  void CopyFromHost(std::byte* to, const void* from, int64_t bytes,
                    DeviceStream stream) const override {
    device_.CopyFromHost(to, from, bytes, stream);
  }
  void CopyToHost(void* to, const std::byte* from, int64_t bytes,
                  DeviceStream stream) const override {
    device_.CopyToHost(to, from, bytes, stream);
  }
  void Copy(std::byte* to, const std::byte* from, int64_t bytes,
            DeviceStream stream) const override {
    device_.Copy(to, from, bytes, stream);
  }

 private:
  const Device& device_;
  DeviceMemory memory_;
  mutable int64_t used_ = 0;
};

DeviceWeights::DeviceWeights(const Device& device) : device_(&device) {}
DeviceWeights::~DeviceWeights() = default;

void DeviceWeights::BeginMeasuring() {
  measures_ = true;
  measured_ = 0;
  seen_.clear();
}

void DeviceWeights::OpenArena(std::string_view what) {
  seen_.clear();
  if (measured_ == 0) return;
  std::optional<DeviceMemory> memory =
      DeviceMemory::Allocate(*device_, measured_, MemoryUse::kWorkspace);
  if (!memory)
    ThrowTooLittleMemory(*device_, measured_, "the weights of " + std::string(what),
                         "use a smaller model or a smaller copy of it");
  arenas_.push_back(std::make_unique<Arena>(*device_, std::move(*memory)));
  arena_ = arenas_.back().get();
}

const DeviceWeights::Arena& DeviceWeights::OpenedArena() const {
  LATTE_CHECK(arena_ != nullptr, "weights are placed outside of InArena");
  return *arena_;
}

void DeviceWeights::CloseArena() {
  LATTE_CHECK(arena_ == nullptr || arena_->left() == 0, "an arena with {} bytes left",
              arena_->left());
  arena_ = nullptr;
  converted_.clear();
}

TensorView DeviceWeights::Place(const TensorView& mapped) {
  if (device_->is_host() || mapped.empty()) return mapped;
  const Source source(mapped.data, mapped.dtype, mapped.elements(), mapped.stride[0]);
  if (const auto found = placed_.find(source); found != placed_.end())
    return TensorView(found->second, mapped.dtype,
                      std::span(mapped.shape.data(), static_cast<size_t>(mapped.rank)));
  if (measures_) {
    if (!seen_.insert(source).second) return mapped;
    measured_ += BytesInArena(mapped);
    // Read from disk while what lies before is copied.
    if (mapped.contiguous()) ReadAhead(BytesOf(mapped));
    return mapped;
  }
  const TensorView out = PlaceCopy(mapped);
  placed_[source] = out.data;
  return out;
}

TensorView DeviceWeights::PlaceCopy(const TensorView& host) {
  if (device_->is_host() || host.empty()) return host;
  if (measures_) {
    measured_ += BytesInArena(host);
    return host;
  }
  return copies_.emplace_back(CopyToDevice(host, OpenedArena()));
}

Tensor DeviceWeights::PlaceOwned(Tensor host) {
  if (device_->is_host()) return host;
  if (measures_) {
    measured_ += BytesInArena(host);
    return host;
  }
  return CopyToDevice(host, OpenedArena());
}

void DeviceWeights::KeepConverted(const std::string& key, LoadedMatrix matrix) {
  converted_[key] = std::move(matrix);
}

std::optional<LoadedMatrix> DeviceWeights::TakeConverted(const std::string& key) {
  auto node = converted_.extract(key);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

}  // namespace latte
