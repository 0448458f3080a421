// Measures absorbed decode alone, on random data in pages
// of 64 tokens that lie in shuffled order. Checks no result; tests/conformance does.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"
#include "src/kernels/machine.h"
#include "src/tensor/row_format.h"

namespace latte {

struct BenchAttentionOptions {
  int64_t heads = 128;     // 1 … 1024
  int64_t context = 8192;  // tokens of each sequence, the new ones included; 1 … 2^20
  int64_t batch = 1;       // sequences; 1 … 1024
  int64_t q_len = 1;       // new tokens of each sequence; 1 … context
  int64_t c = 512;         // width of the latent; 1 … 1024
  int64_t r = 64;          // of the rope part; 0 … 128
  CacheDType cache_dtype;
  int threads = 1;     // 1 … 1024
  std::string kernel;  // a row's name; empty: the row that the engine would take

  // Errors: kInvalidArgument naming the flag; kExhausted for more than 16 GiB of cache.
  [[nodiscard]] Status Validate() const;
};

// Medians of 9 runs of at least 20 ms each, a run of the peak loops before every one:
//   gflops        flops / time; flops = 2·H·(2C+R) for each pair of a new token and a key it sees
//   peak_gflops   what the row's arithmetic can reach: of bf16 or int8 dot products for rows that
//                 multiply those, else of f32 multiply-adds; null where the machine has no such
//                 instructions
//   fraction      median of gflops / peak_gflops within a run
//   bytes         cache rows counted once for each such pair, queries and outputs once
//   unique_bytes  every cache row, query and output once
//   cache_gbps    cache rows once / time
// and `us` for one call, so that the other figures can be recomputed.
// Errors: of Validate; kInvalidArgument for a kernel that is unknown, that the machine lacks or
// that does not support the shape.
[[nodiscard]] Result<JsonOut> BenchAttention(const BenchAttentionOptions& options,
                                             const Machine& machine);

}  // namespace latte
