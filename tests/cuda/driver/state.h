// The inside of the emulated driver, libcuda_emulated.so: its memory, streams and counts.
//
// It keeps the rules of a real driver where these can hurt, and is as unkind as they allow:
//   streams   work runs when somebody waits for it; work that is not waited for as late as events
//             allow, in an order that LATTE_EMULATOR_SEED draws
//   memory    is NaN when it is taken and unmapped when it is freed; the host can touch it at no
//             time
//   copies    read pageable memory at the call and pinned memory when the copy runs
//   capture   waits, allocations and pageable copies are refused, and end the capture
//   errors    of a kernel show at the next wait, and then for ever
// It refuses the default stream, which our code must never use.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/tensor/cuda/driver_abi.h"
#include "tests/cuda/driver/counts.h"
#include "tests/cuda/emulator/emulator.h"

namespace latte::emulator {

namespace abi = cuda::abi;

// Memory of the device: one mapping of addresses, which grows.
class DeviceMap {
 public:
  DeviceMap();

  // 0 without room.
  abi::Ptr Take(size_t bytes);
  bool Give(abi::Ptr at);  // whether it was taken
  bool Holds(abi::Ptr at, size_t bytes) const;
  size_t limit() const { return limit_; }
  size_t in_use() const { return in_use_; }
  size_t left() const { return limit_ - std::min(limit_, in_use_ + of_others_); }
  // taken_later: by another program, with LetOthersTake.
  void SetLimit(size_t bytes, size_t taken_later);
  void LetOthersTake();
  GlobalMemory& kernels_view() { return view_; }

  // Makes the memory accessible while it lives.
  class Open {
   public:
    explicit Open(const DeviceMap& map) : map_(map) { map_.Protect(true); }
    ~Open() { map_.Protect(false); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    const DeviceMap& map_;
  };

 private:
  void Protect(bool open) const;

  std::byte* base_;
  size_t used_ = 0, in_use_ = 0, limit_;
  size_t of_others_ = 0, taken_later_ = 0;
  std::map<abi::Ptr, size_t> live_;
  GlobalMemory view_;
};

struct StreamState;

// Work of a stream; with `after`, done when that stream has done `at` works.
struct Work {
  std::function<void()> run;
  StreamState* after = nullptr;
  size_t at = 0;
};

struct GraphState {
  std::vector<Work> works;
};

struct StreamState {
  std::deque<Work> queue;
  size_t issued = 0, done = 0;
  std::unique_ptr<GraphState> capture;
  bool capture_failed = false;
};

struct EventState {
  StreamState* stream = nullptr;  // null: never recorded
  size_t at = 0;
  bool has_time = true;
  bool is_captured = false;  // a place in a graph, for which no call can wait
  double seconds = 0;        // when it happened
};

struct FunctionState {
  const char* name;
  size_t params_bytes;
  int threads;
  void (*body)(const void* params);
  int shared_limit = 48 << 10;
};

// The functions of the list of kernels.
std::vector<FunctionState> MakeFunctions();

// All state of the driver. One thread calls at a time: Call (calls.h) locks.
struct DriverState {
  DriverState();

  // Adds work to a stream, or to the graph that it captures.
  void Enqueue(StreamState& stream, Work work);
  // Runs works until the stream has done `until`.
  void RunTo(StreamState& stream, size_t until);
  bool AnyCapture() const;
  // Refuses a call that no capture allows: ends those that are open.
  abi::Code RefuseInCapture();
  // Refuses a wait for an event of a capture, which ends the captures too.
  abi::Code RefuseEvent();
  bool IsPinned(const void* at, size_t bytes) const;
  void Launch(const FunctionState& function, const std::array<unsigned, 3>& grid, int shared,
              const void* params);
  void Report(const std::string& text);

  DeviceMap memory;
  std::vector<std::unique_ptr<StreamState>> streams;
  std::map<const std::byte*, size_t> pinned;
  std::vector<FunctionState> functions = MakeFunctions();
  std::mt19937_64 random;
  Options options;
  Counts counts;
  std::vector<Transfer> transfers;
  std::string first_report;
  int64_t failing_launch = 0;  // LATTE_EMULATOR_FAIL_LAUNCH: the number of a launch that fails
  abi::Code sticky = abi::kSuccess;
  int version = 13000;
};

}  // namespace latte::emulator
