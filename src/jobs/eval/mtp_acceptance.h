// How often the multi-token-prediction layer drafts what the model itself would have said.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "latte/status.h"

#include "src/engine/settings.h"
#include "src/models/model.h"

namespace latte {

struct MtpAcceptance {
  int64_t accepted = 0;
  int64_t drafted = 0;
};

// Over every position t of `texts` (token ids): whether the draft of token t+2, made from the
// hidden state at t and token t+1, is the likeliest token of the model itself after t+1. That is
// the rate at which greedy decoding takes over drafts while it follows these texts. Of `settings`
// counts how a token is computed, not how many are. Errors: kInvalidArgument for a model without
// drafting layer or a token outside the vocabulary; kExhausted when the cache does not fit.
[[nodiscard]] Result<MtpAcceptance> MeasureMtpAcceptance(
    const Model& model, const Machine& machine, std::span<const std::vector<int32_t>> texts,
    const Settings& settings);

}  // namespace latte
