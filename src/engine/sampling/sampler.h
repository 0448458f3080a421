// From logits to the sampled token and its logprobs.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "latte/request.h"

#include "src/base/thread_pool.h"
#include "src/kernels/machine.h"

namespace latte {

bool HasPenalties(const SamplingParams& params);

// How often a sequence has each token, for penalties. Thread-compatible.
class TokenHistory {
 public:
  void AddPrompt(std::span<const int32_t> tokens);
  void AddGenerated(int32_t token);

  struct Count {
    int32_t generated = 0;
    bool in_prompt = false;
  };
  const std::unordered_map<int32_t, Count>& counts() const { return counts_; }

 private:
  std::unordered_map<int32_t, Count> counts_;
};

// The logits of one token to sample, and how.
struct SampleInput {
  std::span<const float> logits;  // [vocab]
  const SamplingParams* params = nullptr;
  const TokenHistory* history = nullptr;  // null: no penalties
  std::span<const int32_t> banned;        // ids that must not be sampled
  std::span<const uint32_t> allowed;      // a mask (grammar.h) of those that may be; empty: all
  int64_t position = 0;                   // index of the new token in its sequence
  int logprobs = -1;                      // alternatives to report; −1: no logprobs at all
  const Machine* machine = nullptr;       // required; no result depends on it
};

struct SampledToken {
  int32_t token = 0;
  std::optional<TokenLogprobs> logprobs;  // of the logits as the model gave them
};

// Ties go to the lower id. Equal arguments give equal tokens.
// Errors: kCorrupt "numerical error" when a logit is NaN or +inf, or when all are -inf;
// kInvalidArgument when all others are banned or not allowed.
[[nodiscard]] Result<SampledToken> Sample(const SampleInput& input);

// All inputs, shared among threads; results do not depend on how.
[[nodiscard]] std::vector<Result<SampledToken>> SampleAll(std::span<const SampleInput> inputs,
                                                          ThreadPool& threads);

// The logprob of `token` and of the `top` likeliest tokens. Errors: as Sample.
[[nodiscard]] Result<TokenLogprobs> Logprobs(std::span<const float> logits, int32_t token, int top,
                                             const Machine& machine);

// log Σ exp(logits), in fp64.
double LogSumExp(std::span<const float> logits);

}  // namespace latte
