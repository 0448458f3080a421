// The weights of a model in the memory of a device: copies of tensors in the mapped files. The
// tensors of a layer are adjacent in one block of memory, the arena of the layer.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "src/checkpoint/formats/common/loaded_matrix.h"
#include "src/tensor/device.h"
#include "src/tensor/tensor.h"

namespace latte {

// Thread-compatible. The device must outlive it, and it what it places. On the host it places
// nothing: every function gives its argument back.
class DeviceWeights {
 public:
  // Tensors begin at multiples of it: kernels read aligned vectors and, by tensor maps, aligned
  // blocks.
  static constexpr int64_t kAlignment = 256;

  explicit DeviceWeights(const Device& device);
  ~DeviceWeights();
  DeviceWeights(const DeviceWeights&) = delete;
  DeviceWeights& operator=(const DeviceWeights&) = delete;

  const Device& device() const { return *device_; }

  // The result of load(), which loads `what` ("layer 3") and returns a Result. On a device load()
  // runs twice: the first time the sizes of what it places are added up, then it copies to an arena
  // of exactly that size. So it must place the same both times, and what it returned first is
  // dropped. Throws ThrowTooLittleMemory's error.
  template <class Load>
  std::invoke_result_t<Load> InArena(std::string_view what, const Load& load) {
    if (device_->is_host()) return load();
    BeginMeasuring();
    auto measured = load();
    measures_ = false;
    if (!measured) return measured;
    OpenArena(what);
    auto out = load();
    CloseArena();
    return out;
  }
  // Whether load() runs for the first time.
  bool measures() const { return measures_; }

  // A tensor of the mapped files on the device, once however often it is placed.
  TensorView Place(const TensorView& mapped);
  // A copy of a tensor that does not live as long as this object.
  TensorView PlaceCopy(const TensorView& host);
  // The same for a tensor that its holder keeps.
  Tensor PlaceOwned(Tensor host);

  // Keeps a matrix that loading converts, from the first load() to the second: it is converted
  // once.
  void KeepConverted(const std::string& key, LoadedMatrix matrix);
  std::optional<LoadedMatrix> TakeConverted(const std::string& key);

 private:
  class Arena;
  // Where a tensor lies in the mapped files, and what of it is used.
  using Source = std::tuple<const std::byte*, DType, int64_t, int64_t>;

  void BeginMeasuring();
  const Arena& OpenedArena() const;
  void OpenArena(std::string_view what);
  void CloseArena();

  const Device* device_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  Arena* arena_ = nullptr;  // of what is being loaded
  std::map<Source, std::byte*> placed_;
  std::deque<Tensor> copies_;  // end before their arenas
  std::map<std::string, LoadedMatrix> converted_;
  // The state of the load() that runs.
  bool measures_ = false;
  int64_t measured_ = 0;
  std::set<Source> seen_;  // while it measures
};

}  // namespace latte
