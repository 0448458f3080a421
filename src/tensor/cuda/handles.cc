#include "src/tensor/cuda/handles.h"

#include "src/base/limits/out_of_memory.h"

namespace latte::cuda {

PinnedMemory::PinnedMemory(const Driver& driver, int64_t bytes) : driver_(driver), bytes_(bytes) {
  const abi::Code code = driver.cuMemHostAlloc(&data_, static_cast<size_t>(bytes), 0);
  if (code == abi::kOutOfMemory) throw OutOfMemory(bytes, "copies to the GPU (pinned memory)");
  driver.Check(code, "pinned memory was taken");
}

Stream::Stream(const Driver& driver) : driver_(driver) {
  driver.Check(driver.cuStreamCreate(&stream_, abi::kStreamNonBlocking), "a stream was made");
}

Event::Event(const Driver& driver, unsigned flags) : driver_(driver) {
  driver.Check(driver.cuEventCreate(&event_, flags), "an event was made");
}
void Event::Record(abi::Stream stream) const {
  driver_.Check(driver_.cuEventRecord(event_, stream), "an event was recorded");
}
void Event::Await() const {
  driver_.Check(driver_.cuEventSynchronize(event_), "the host waited for an event");
}

}  // namespace latte::cuda
