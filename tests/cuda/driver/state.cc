#include "tests/cuda/driver/state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace latte::emulator {
namespace {

uint64_t NumberOf(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

bool IsReady(const StreamState& stream) {
  if (stream.queue.empty()) return false;
  const Work& next = stream.queue.front();
  return next.after == nullptr || next.after->done >= next.at;
}

}  // namespace

DriverState::DriverState() {
  const uint64_t seed = NumberOf("LATTE_EMULATOR_SEED", 1);
  random.seed(seed);
  options = Options::FromEnvironment();
  failing_launch = static_cast<int64_t>(NumberOf("LATTE_EMULATOR_FAIL_LAUNCH", 0));
  version = static_cast<int>(NumberOf("LATTE_EMULATOR_VERSION", 13000));
}

void DriverState::Report(const std::string& text) {
  if (counts.reports++ == 0) first_report = text;
  std::fprintf(stderr, "emulated GPU: %s\n", text.c_str());
}

void DriverState::Enqueue(StreamState& stream, Work work) {
  if (stream.capture != nullptr) return stream.capture->works.push_back(std::move(work));
  stream.queue.push_back(std::move(work));
  ++stream.issued;
}

void DriverState::RunTo(StreamState& stream, size_t until) {
  if (stream.done >= until) return;
  const DeviceMap::Open open(memory);
  while (stream.done < until) {
    std::vector<StreamState*> ready;
    for (const auto& each : streams)
      if (IsReady(*each)) ready.push_back(each.get());
    if (ready.empty()) return Report("deadlock: every stream waits for another");
    const bool own = IsReady(stream);
    StreamState& next = own ? stream : *ready[random() % ready.size()];
    const Work work = std::move(next.queue.front());
    next.queue.pop_front();
    ++next.done;
    if (work.run && sticky == abi::kSuccess) work.run();
  }
}

bool DriverState::AnyCapture() const {
  return std::ranges::any_of(streams, [](const auto& s) { return s->capture != nullptr; });
}

abi::Code DriverState::RefuseInCapture() {
  for (const auto& stream : streams)
    if (stream->capture != nullptr) stream->capture_failed = true;
  return abi::kStreamCaptureUnsupported;
}

abi::Code DriverState::RefuseEvent() {
  RefuseInCapture();
  return abi::kCapturedEvent;
}

bool DriverState::IsPinned(const void* at, size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(at);
  auto next = pinned.upper_bound(begin);
  if (next == pinned.begin()) return false;
  const auto& [block, size] = *std::prev(next);
  return begin + bytes <= block + size;
}

void DriverState::Launch(const FunctionState& function, const std::array<unsigned, 3>& grid,
                         int shared, const void* params) {
  ++counts.launches;
  if (counts.launches == failing_launch) {
    sticky = abi::kLaunchFailed;
    return;
  }
  LaunchInfo info;
  info.name = function.name;
  info.grid = {static_cast<int>(grid[0]), static_cast<int>(grid[1]), static_cast<int>(grid[2])};
  info.threads = function.threads;
  info.shared_bytes = shared;
  options.seed = random();
  const auto report =
      emulator::Launch(info, memory.kernels_view(), options, [&] { function.body(params); });
  for (const std::string& error : report.errors) Report(error);
  if (!report.errors.empty()) sticky = abi::kIllegalAddress;
}

}  // namespace latte::emulator
