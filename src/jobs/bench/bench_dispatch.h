// Measures what path choices are priced with, and how good the choices are.
#pragma once

#include "src/base/json_out_fwd.h"
#include "src/kernels/machine.h"
#include "src/layers/mla/rates.h"
#include "src/tensor/dtype.h"

namespace latte {

struct DispatchOptions {
  int64_t heads = 16;  // 1 … 128; C = 512, R = 64, N = V = 128
  int threads = 1;     // 1 … 1024
  DType dtype = DType::kBF16;
  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

// Rates of the parts of attention on this machine, medians of 7 runs each. Errors: of Validate;
// kExhausted when memory does not suffice.
[[nodiscard]] Result<MlaRates> MeasureRates(const DispatchOptions& options, const Machine& machine);

// Runs both paths over new tokens {1, 2, 4, …, 1024} behind {0, 64, 512, 4096, 32768} cached ones
// and compares the one that `rates` choose with the faster one:
//   grid         per cell: new_tokens, cached_tokens, absorbed_us, latent_us, chosen, ratio
//   worst_ratio  the largest time of the chosen path / time of the faster one
// Medians of 7 runs in turn, of 3 where they take long; a path that the first run shows to be 4
// times slower is not run again. Errors: as MeasureRates.
[[nodiscard]] Result<JsonOut> BenchDispatch(const DispatchOptions& options, const MlaRates& rates,
                                            const Machine& machine);

}  // namespace latte
