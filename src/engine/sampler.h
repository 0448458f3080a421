// Logits → token.
#pragma once

#include <span>

#include "latte/request.h"

namespace latte {

// Draws the token at `position` (its index in the sequence). Ties go to the lower id. Equal
// arguments give equal tokens. Errors: kInternal "numerical error" when a logit is NaN or +inf, or
// when all are −inf.
[[nodiscard]] Result<int32_t> Sample(std::span<const float> logits, const SamplingParams& params,
                                     int64_t position);

// log Σ exp(logits), in fp64.
double LogSumExp(std::span<const float> logits);

}  // namespace latte
