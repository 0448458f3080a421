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

// The number of transfers so far, in the order of the calls. Fills `out` with those from `begin` on, up to `most`.
extern "C" int64_t latte_emulated_transfers(int64_t begin, latte::emulator::Transfer* out,
                                            int64_t most);
