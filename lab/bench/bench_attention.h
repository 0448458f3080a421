// Measures attention kernels alone, on random data. Does not check results; tests/conformance does.
#pragma once

#include <optional>

#include "lab/bench/harness.h"
#include "src/base/json_out_fwd.h"
#include "src/tensor/cache_format.h"

namespace latte {

struct BenchAttentionOptions : BenchKernelOptions {
  int64_t heads = 128;     // 1 … 1024
  int64_t context = 8192;  // tokens of each sequence including new ones; 1 … 2^20
  int64_t batch = 1;       // sequences; 1 … 1024
  std::optional<int64_t>
      q_len;  // new tokens of each sequence; 1 … context; not set: 1, or context for prompts
  // Decode only.
  int64_t c = 512;  // width of the latent; 1 … 1024
  int64_t r = 64;   // width of the rope part; 0 … 128
  CacheDType cache_dtype;
  // Prefill only.
  DType dtype = DType::kBF16;  // arithmetic
};

// Absorbed attention over pages of 64 tokens in shuffled order.
// Medians of 9 runs of at least 20 ms, with a run of the peak loops before each:
//   gflops        flops / time; flops = 2·H·(2C+R) per pair of a new token and a key it attends to
//   peak_gflops   the peak of the kernel's arithmetic: bf16 or int8 dot products if it uses them,
//                 otherwise f32 multiply-adds; null if the machine lacks the instructions
//   fraction      median of gflops / peak_gflops within a run
//   bytes         cached rows once per such pair, queries and outputs once
//   unique_bytes  every cached row, query and output once
//   cache_gbps    cached rows once / time
// and `us` for one call, from which the other figures can be recomputed.
// Errors: kInvalidArgument naming the flag, or for a kernel that is unknown, that the machine lacks
// or that does not support the shape; kExhausted for more than 16 GiB of operands.
[[nodiscard]] Result<JsonOut> BenchDecode(const BenchAttentionOptions& options,
                                          const Machine& machine, const JobProgress& progress = {});

// Expanded attention with DeepSeek's widths (N = 128, R = 64, V = 128); keys and values are
// interleaved as an up-projection writes them. One call for each sequence. The figures of
// BenchDecode, with
//   flops         2·H·(N+R+V) per pair of a new token and a key it attends to
//   bytes         key and value of a head once per such pair, queries and outputs once
//   unique_bytes  every operand once
// Errors: as BenchDecode.
[[nodiscard]] Result<JsonOut> BenchPrefill(const BenchAttentionOptions& options,
                                           const Machine& machine,
                                           const JobProgress& progress = {});

}  // namespace latte
