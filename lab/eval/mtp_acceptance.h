// Measures how often the multi-token-prediction layer drafts the token that the model itself would
// choose.
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

// For every position t of `texts` (token ids): whether the draft of token t+2, made from the hidden
// state at t and token t+1, is the model's most probable token after t+1. This is the rate at which
// greedy decoding accepts drafts while it follows these texts. Of `settings`, only the fields that
// affect the computation of a token matter, not the limits.
// Errors: kInvalidArgument for a model without drafting layer or a token outside the vocabulary;
// kExhausted if the cache does not fit.
[[nodiscard]] Result<MtpAcceptance> MeasureMtpAcceptance(
    const Model& model, const Machine& machine, std::span<const std::vector<int32_t>> texts,
    const Settings& settings);

}  // namespace latte
