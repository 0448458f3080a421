// Logits of a given sequence, over the model of an engine, for programs that embed Latte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "latte/options.h"
#include "latte/status.h"

#include "src/checkpoint/config/model_config.h"
#include "src/kernels/machine.h"
#include "src/models/model.h"

namespace latte {

struct SequenceModel {
  const Model* model = nullptr;
  const Machine* machine = nullptr;
  const EngineOptions& options;  // of the engine, with all values resolved
};

// Errors: kInvalidArgument naming what is wrong: no tokens or too many, a token outside of the
// vocabulary, a `first` outside of the sequence, fewer than (tokens − first) · vocab numbers of
// room.
[[nodiscard]] Status CheckLogits(const ModelConfig& config, std::span<const int32_t> tokens,
                                 int64_t first, size_t room);

// Writes the logits of the tokens from `first` on to `out`, [tokens − first, vocab]. Has a cache
// and threads of its own while it runs. Requires: CheckLogits.
// Errors: kCancelled once `stopped` returns true, which is called after every chunk; of
// GivenSequence.
[[nodiscard]] Status ComputeLogits(const SequenceModel& of, std::span<const int32_t> tokens,
                                   int64_t first, std::span<float> out,
                                   const std::function<bool()>& stopped);

}  // namespace latte
