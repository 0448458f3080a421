// Measures the gain from absorbing W_UK and W_UV: one decode step of one attention layer, from the
// query latent to the output projection, in five forms.
//
// CD       caches K and V of every head (DeepSeek-V2's published code)
// CC       caches latents and expands them in every step
// A_CC     absorbed over cached latents; concatenates latent and rope part in every step
// A_CC_ME  absorbed over rows that hold both parts: Latte's absorbed path
// AM_CC_ME as A_CC_ME, with W_UQ·W_UK and W_UV·W_O multiplied in advance
//
// Source of the first four and of the published figures: discussion 12 of the model
// deepseek-ai/DeepSeek-V2-Chat on Hugging Face, A_CC_ME over CD: 20.4 times for one request and
// 3.63 for 32 on an A100-PCIE-40GB, 26.2 and 3.52 on an RTX 4080.
#pragma once

#include "src/base/json_out_fwd.h"
#include "src/jobs/job_progress.h"
#include "src/kernels/machine.h"

namespace latte {

struct AbsorptionOptions {
  int64_t heads = 128;     // DeepSeek-V2: D = 5120, Cq = 1536, C = 512, R = 64, N = V = 128
  int64_t context = 1024;  // cached tokens per request
  int64_t batch = 1;       // requests, one new token each
  int threads = 1;
};

// "forms": for each form its us, weight_bytes, cache_bytes and speedup over CD (medians of 5
// interleaved runs).
// Errors: kInvalidArgument naming the flag; kExhausted if memory is short.
[[nodiscard]] Result<JsonOut> BenchAbsorption(const AbsorptionOptions& options,
                                              const Machine& machine,
                                              const JobProgress& progress = {});

}  // namespace latte
