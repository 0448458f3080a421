// Measures expanded attention alone, on random data of DeepSeek's widths (N = 128, R = 64, V =
// 128), with keys and values interleaved as an up-projection writes them. Does not check results;
// tests/conformance does.
#pragma once

#include <string>

#include "src/base/json_out_fwd.h"
#include "src/jobs/job_progress.h"
#include "src/kernels/machine.h"
#include "src/tensor/dtype.h"

namespace latte {

struct BenchPrefillOptions {
  int64_t heads = 16;          // 1 … 1024
  int64_t context = 2048;      // keys of each sequence including new tokens; 1 … 2^20
  int64_t batch = 1;           // sequences, one call each; 1 … 1024
  int64_t q_len = 2048;        // new tokens of each sequence, at its end; 1 … context
  DType dtype = DType::kBF16;  // arithmetic
  int threads = 1;             // 1 … 1024
  std::string kernel;          // kernel name; empty: the kernel that the engine would choose

  // Errors: kInvalidArgument naming the flag; kExhausted for more than 16 GiB of operands.
  [[nodiscard]] Status Validate() const;
};

// The figures of BenchAttention (bench_attention.h), with
//   flops         2·H·(N+R+V) per pair of a new token and a key it attends to
//   bytes         key and value of a head once per such pair, queries and outputs once
//   unique_bytes  every operand once
// Errors: of Validate; kInvalidArgument for a kernel that is unknown, that the machine lacks or
// that does not support the arithmetic.
[[nodiscard]] Result<JsonOut> BenchPrefill(const BenchPrefillOptions& options,
                                           const Machine& machine,
                                           const JobProgress& progress = {});

}  // namespace latte
