// Counts of the work of the emulated driver, for tests: the function latte_emulated_counts of libcuda_emulated.so.
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

}  // namespace latte::emulator

// Fills a copy of the counts; the text of the first report, or "".
extern "C" const char* latte_emulated_counts(latte::emulator::Counts* counts);
