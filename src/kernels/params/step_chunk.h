// A SequenceChunk as a step holds it, in the memory of the device that computes the step.
#pragma once

#include <cstdint>

namespace latte {

// Kernels that run where the host cannot read find the sequences of a step in an array of these.
struct StepChunk {
  int32_t query_start = 0;
  int32_t count = 0;
  int32_t cached_len = 0;
  int32_t path = 0;        // MlaPath
  int32_t first_page = 0;  // in the step's list of pages
  int32_t page_count = 0;
};

}  // namespace latte
