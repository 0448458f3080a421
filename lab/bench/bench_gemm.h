// Measures matrix products alone, on random data: single products, the products around attention,
// and the experts of a layer. Does not check results; tests/conformance does.
#pragma once

#include <string>

#include "lab/bench/harness.h"
#include "src/base/json_out_fwd.h"

namespace latte {

// Weights: f32, f16, bf16, fp8 (blocks of 128×128), int8 (one scale per row), int4 (groups of 32)
// or a type of GGUF blocks, as Q4_K. Activations: f32, bf16 or int8 (groups of 128); empty: int8
// for int8 and int4 weights, f32 for f32 weights, otherwise bf16.
struct BenchWeights : BenchKernelOptions {
  std::string dtype = "bf16";
  std::string act;
};

struct BenchGemmOptions : BenchWeights {
  std::string name = "gemm";  // name of the record; "linear" for callers of the former name
  int64_t m = 1;              // M, rows of activations; 1 … 2^16
  int64_t n = 7168;           // N, outputs; 1 … 2^18
  int64_t k = 7168;           // K, inputs; 1 … 2^18
};

// "v2-lite" (H = 16) or "v3" (H = 128).
struct BenchShapeOptions : BenchWeights {
  std::string shape = "v3";
  int64_t m = 1;    // tokens; 1 … 2^16
  double skew = 0;  // of the router: expert e is chosen with weight (e + 1)^−skew; 0 … 4
};

// Medians of 9 runs of at least 20 ms, with the ceilings measured before each:
//   gflops       flops / time; a multiply-add counts as 2
//   peak_gflops  the peak of the kernel's arithmetic; null if the machine lacks the instructions
//   weight_gbps  weights and scales / time
//   dram_gbps    rate of reading memory once
//   fraction     the larger of flops / peak_gflops and bytes / dram_gbps, divided by the time
//   bytes        weights, scales, activations and outputs once; of experts, the ones used
// and `us` for one call. For M up to 64, calls cycle through weights of 512 MiB or more.
// Errors: kInvalidArgument naming the flag, or for a kernel that is unknown, that the machine lacks
// or that does not support the types.
[[nodiscard]] Result<JsonOut> BenchGemm(const BenchGemmOptions& options, const Machine& machine,
                                        const JobProgress& progress = {});

// The products around attention, each a record in "products": h → q_a and kv_a in one call (or q
// and kv_a), q_b, q_nope·W_UK and o·W_UV. The last two read rows of one mapped kv_b.
[[nodiscard]] Result<JsonOut> BenchProjections(const BenchShapeOptions& options,
                                               const Machine& machine,
                                               const JobProgress& progress = {});

// The experts of a layer for m tokens: gate and up in one call, down in another, including the
// shared expert.
[[nodiscard]] Result<JsonOut> BenchMoe(const BenchShapeOptions& options, const Machine& machine,
                                       const JobProgress& progress = {});

}  // namespace latte
