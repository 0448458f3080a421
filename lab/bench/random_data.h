// Random data for measurements: as slow to read as any other data, and as fast to fill as a copy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/kernels/params/sequence_chunk.h"
#include "src/tensor/tensor.h"

namespace latte {

// Fills contiguous f32 or 16-bit memory with numbers that are uniform in [−scale, scale). A large
// one repeats its first megabyte.
void FillRandom(const TensorView& view, float scale, uint64_t seed);

// The page ids first, first + 1, … in an order that differs from the order in memory.
std::vector<int32_t> ShuffledPages(int64_t first, int64_t count);

// A chunk of `new_tokens` after `cached_tokens` for each of `batch` sequences, which share `pages`
// equally.
std::vector<SequenceChunk> EqualChunks(std::span<const int32_t> pages, int64_t batch,
                                       int64_t new_tokens, int64_t cached_tokens, MlaPath path);

// Memory filled with numbers that are normal in every type: no NaN, infinity or subnormal.
class RandomOperands {
 public:
  explicit RandomOperands(int64_t bytes);
  // The next tensor [b, n, k] of a type; starts again at the end of the memory.
  TensorView Take(DType type, int64_t b, int64_t n, int64_t k);

 private:
  Tensor memory_;
  int64_t used_ = 0;
};

}  // namespace latte
