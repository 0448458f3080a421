// The functions of libcuda_emulated.so that move data, run kernels and order work. devices.cc has
// the others.
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/driver/calls.h"

namespace latte::emulator {
namespace {

// Copies of pageable memory end a capture; `run` does the copy.
abi::Code EnqueueCopy(StreamState& stream, TransferKind kind, size_t bytes,
                      std::function<void()> run) {
  DriverState& driver = Driver();
  driver.transfers.push_back({kind, static_cast<int64_t>(bytes)});
  return Enqueued(stream, {[&driver, run = std::move(run)] {
                             ++driver.counts.copies;
                             run();
                           },
                           nullptr, 0});
}

void* At(abi::Ptr at) { return reinterpret_cast<void*>(at); }
GlobalMemory& View() { return Driver().memory.kernels_view(); }

void CopyIn(abi::Ptr to, const void* from, size_t bytes) {
  std::memcpy(At(to), from, bytes);
  View().NoteWrite(At(to), static_cast<int64_t>(bytes));
}
void CopyOut(void* to, abi::Ptr from, size_t bytes) {
  if (View().FirstUnwritten(At(from), static_cast<int64_t>(bytes)) >= 0)
    Driver().Report("a copy to the host of memory that nothing has written");
  std::memcpy(to, At(from), bytes);
}

double Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

FunctionState* FunctionOf(abi::Function f) { return static_cast<FunctionState*>(f); }

// The checks of a real driver before a launch.
bool FitsLimits(const FunctionState& f, const unsigned (&grid)[3], const unsigned (&block)[3],
                unsigned shared) {
  constexpr unsigned kMostBlocksX = 0x7fffffff, kMostBlocks = 65535;
  for (const unsigned n : {grid[0], grid[1], grid[2], block[0], block[1], block[2]})
    if (n == 0) return false;
  return grid[0] <= kMostBlocksX && grid[1] <= kMostBlocks && grid[2] <= kMostBlocks &&
         static_cast<int>(block[0]) == f.threads && block[1] == 1 && block[2] == 1 &&
         static_cast<int>(shared) <= f.shared_limit;
}

abi::Code WaitUntil(StreamState& stream, size_t until) {
  DriverState& driver = Driver();
  if (driver.AnyCapture()) return driver.RefuseInCapture();
  ++driver.counts.waits;
  driver.transfers.push_back({TransferKind::kWait, 0});
  driver.RunTo(stream, until);
  return driver.sticky;
}

}  // namespace
}  // namespace latte::emulator

using namespace latte::emulator;  // NOLINT: the functions below have C's names

extern "C" {

abi::Code cuMemcpyHtoDAsync_v2(abi::Ptr to, const void* from, size_t bytes, abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  if (!Driver().memory.Holds(to, bytes)) return abi::kInvalidValue;
  Driver().counts.bytes_to_device += static_cast<int64_t>(bytes);
  constexpr TransferKind kKind = TransferKind::kFromHost;
  if (Driver().IsPinned(from, bytes))
    return EnqueueCopy(*stream, kKind, bytes, [=] { CopyIn(to, from, bytes); });
  if (stream->capture != nullptr) return Driver().RefuseInCapture();
  ++Driver().counts.pageable_copies;
  const auto* const first = static_cast<const std::byte*>(from);
  const auto copy = std::make_shared<std::vector<std::byte>>(first, first + bytes);
  return EnqueueCopy(*stream, kKind, bytes, [=] { CopyIn(to, copy->data(), bytes); });
}

abi::Code cuMemcpyDtoHAsync_v2(void* to, abi::Ptr from, size_t bytes, abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  if (!Driver().memory.Holds(from, bytes)) return abi::kInvalidValue;
  if (stream->capture != nullptr && !Driver().IsPinned(to, bytes))
    return Driver().RefuseInCapture();
  return EnqueueCopy(*stream, TransferKind::kToHost, bytes, [=] { CopyOut(to, from, bytes); });
}

abi::Code cuMemcpyDtoDAsync_v2(abi::Ptr to, abi::Ptr from, size_t bytes, abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  if (!Driver().memory.Holds(to, bytes) || !Driver().memory.Holds(from, bytes))
    return abi::kInvalidValue;
  return EnqueueCopy(*stream, TransferKind::kWithin, bytes, [=] {
    std::memmove(At(to), At(from), bytes);
    View().NoteCopy(At(to), At(from), static_cast<int64_t>(bytes));
  });
}

abi::Code cuMemsetD8Async(abi::Ptr to, unsigned char value, size_t bytes, abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  if (!Driver().memory.Holds(to, bytes)) return abi::kInvalidValue;
  return Enqueued(*stream, {[=] {
                              std::memset(At(to), value, bytes);
                              View().NoteWrite(At(to), static_cast<int64_t>(bytes));
                            },
                            nullptr, 0});
}

abi::Code cuLaunchKernel(abi::Function f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                         abi::Stream s, void** params, void**) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  const FunctionState* const function = FunctionOf(f);
  if (!FitsLimits(*function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared))
    return abi::kInvalidValue;
  const auto* const first = static_cast<const std::byte*>(params[0]);
  const auto bytes =
      std::make_shared<std::vector<std::byte>>(first, first + function->params_bytes);
  const std::array<unsigned, 3> grid = {grid_x, grid_y, grid_z};
  return Enqueued(
      *stream, {[=] { Driver().Launch(*function, grid, static_cast<int>(shared), bytes->data()); },
                nullptr, 0});
}

abi::Code cuStreamCreate(abi::Stream* stream, unsigned flags) {
  const Call call;
  if (flags != abi::kStreamNonBlocking) return abi::kInvalidValue;
  *stream = Driver().streams.emplace_back(std::make_unique<StreamState>()).get();
  return abi::kSuccess;
}

abi::Code cuStreamDestroy_v2(abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  Driver().RunTo(*stream, stream->issued);
  std::erase_if(Driver().streams, [&](const auto& each) { return each.get() == stream; });
  return abi::kSuccess;
}

abi::Code cuStreamSynchronize(abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  return stream == nullptr ? abi::kInvalidHandle : WaitUntil(*stream, stream->issued);
}

abi::Code cuStreamWaitEvent(abi::Stream s, abi::Event e, unsigned) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  const auto* const event = static_cast<EventState*>(e);
  if (event->stream == nullptr) return abi::kSuccess;  // as if it had happened
  if (stream->capture != nullptr && event->stream != stream) return Driver().RefuseInCapture();
  return Enqueued(*stream, {nullptr, event->stream, event->at});
}

abi::Code cuStreamBeginCapture_v2(abi::Stream s, int) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  if (stream->capture != nullptr) return abi::kInvalidValue;
  stream->capture = std::make_unique<GraphState>();
  stream->capture_failed = false;
  return abi::kSuccess;
}

abi::Code cuStreamEndCapture(abi::Stream s, abi::Graph* graph) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  if (stream->capture == nullptr) return abi::kInvalidValue;
  std::unique_ptr<GraphState> captured = std::move(stream->capture);
  if (stream->capture_failed) return abi::kStreamCaptureInvalidated;
  *graph = captured.release();
  return abi::kSuccess;
}

abi::Code cuEventCreate(abi::Event* event, unsigned flags) {
  const Call call;
  auto* const out = new EventState;
  out->has_time = (flags & abi::kEventDisableTiming) == 0;
  *event = out;
  return abi::kSuccess;
}

abi::Code cuEventDestroy_v2(abi::Event e) {
  const Call call;
  auto* const event = static_cast<EventState*>(e);
  // Its time may still be written.
  if (event->stream != nullptr) Driver().RunTo(*event->stream, event->at);
  delete event;
  return abi::kSuccess;
}

abi::Code cuEventRecord(abi::Event e, abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  auto* const event = static_cast<EventState*>(e);
  const abi::Code code = Enqueued(*stream, {[event] { event->seconds = Now(); }, nullptr, 0});
  event->stream = stream;
  event->at = stream->issued;
  event->is_captured = stream->capture != nullptr;
  return code;
}

abi::Code cuEventQuery(abi::Event e) {
  const Call call;
  const auto* const event = static_cast<EventState*>(e);
  if (event->is_captured) return Driver().RefuseEvent();
  const bool done = event->stream == nullptr || event->stream->done >= event->at;
  return done ? Driver().sticky : abi::kNotReady;
}

abi::Code cuEventSynchronize(abi::Event e) {
  const Call call;
  const auto* const event = static_cast<EventState*>(e);
  if (event->stream == nullptr) return abi::kSuccess;
  if (event->is_captured) return Driver().RefuseEvent();
  return WaitUntil(*event->stream, event->at);
}

abi::Code cuEventElapsedTime_v2(float* milliseconds, abi::Event from, abi::Event to) {
  const Call call;
  const auto *const a = static_cast<EventState*>(from), *const b = static_cast<EventState*>(to);
  if (!a->has_time || !b->has_time) return abi::kInvalidHandle;
  for (const EventState* event : {a, b})
    if (event->stream == nullptr || event->stream->done < event->at) return abi::kNotReady;
  *milliseconds = static_cast<float>((b->seconds - a->seconds) * 1e3);
  return abi::kSuccess;
}

abi::Code cuGraphInstantiateWithFlags(abi::GraphExec* exec, abi::Graph graph, unsigned long long) {
  const Call call;
  *exec = new GraphState(*static_cast<GraphState*>(graph));
  return abi::kSuccess;
}

abi::Code cuGraphLaunch(abi::GraphExec exec, abi::Stream s) {
  const Call call;
  StreamState* const stream = StreamOf(s);
  if (stream == nullptr) return abi::kInvalidHandle;
  for (const Work& work : static_cast<GraphState*>(exec)->works)
    if (const abi::Code code = Enqueued(*stream, work); code != abi::kSuccess) return code;
  return abi::kSuccess;
}

abi::Code cuGraphExecDestroy(abi::GraphExec exec) {
  delete static_cast<GraphState*>(exec);
  return abi::kSuccess;
}

abi::Code cuGraphDestroy(abi::Graph graph) {
  delete static_cast<GraphState*>(graph);
  return abi::kSuccess;
}

}  // extern "C"
