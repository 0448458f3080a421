// Counts and lists of the work of the emulated driver, for tests: functions of libcuda_emulated.so.
#pragma once

#include <cstdint>

namespace latte::emulator {

struct Counts {
  int64_t launches = 0;     // kernels that ran
  int64_t copies = 0;       // between host and device, and within the device
  int64_t waits = 0;        // of the host for a stream or an event
  int64_t allocations = 0;  // of memory of the device
  int64_t reports = 0;      // broken rules

  int64_t bytes_in_use = 0;     // of the device, by this process
  int64_t bytes_to_device = 0;  // copied from the host
  int64_t pageable_copies = 0;  // to the device, of memory that is not pinned
  int64_t pinned_bytes = 0;     // of the host, in use
};

// A copy between host and device, or a wait of the host.
enum class TransferKind : int32_t { kFromHost, kToHost, kWithin, kWait };
struct Transfer {
  TransferKind kind;
  int64_t bytes;  // of a copy
};

}  // namespace latte::emulator

// Fills a copy of the counts; the text of the first report, or "".
extern "C" const char* latte_emulated_counts(latte::emulator::Counts* counts);

// The number of transfers so far, in the order of the calls. Fills `out` with those from `begin`
// on, up to `most`.
extern "C" int64_t latte_emulated_transfers(int64_t begin, latte::emulator::Transfer* out,
                                            int64_t most);

// The memory of the device from now on, instead of LATTE_EMULATOR_MEMORY_MB, and how much of it
// another program takes after the next question for free memory, as LATTE_EMULATOR_TAKEN_LATER_MB
// says.
extern "C" void latte_emulated_memory(int64_t bytes, int64_t taken_later);
