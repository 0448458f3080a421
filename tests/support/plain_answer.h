// The answer that an engine over a FakeModel must give under strict determinism, computed by the
// definition: token by token, without cache, batch or scheduler.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/engine/sampling/sampler.h"
#include "tests/support/fake_model.h"

namespace latte::testing_support {

struct PlainAnswer {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;         // of the answer's tokens, if requested
  std::vector<float> prompt_logprobs;  // of the prompt's tokens, if requested
  FinishReason finish = FinishReason::kLength;
};

// Each answer has its own seed, as include/latte/request.h promises.
inline uint64_t SeedOf(const Request& r, int choice) {
  const uint64_t seed = r.sampling.seed;
  return choice == 0 ? seed : Mix64(seed ^ Mix64(static_cast<uint64_t>(choice)));
}

// `max_tokens`: limit of prompt and answer together, as in the engine's option. The prompt of
// `request` is tokens; it has no stop strings.
inline PlainAnswer AnswerPlainly(const Request& request, int choice, int64_t max_tokens,
                                 const FakeModel::Fault& fault = {}) {
  PlainAnswer out;
  PlainRows rows;
  const Machine reference;  // no instruction set: the reference kernels
  std::vector<float> logits(static_cast<size_t>(kFakeVocab));
  const auto next = [&](int32_t token, MlaPath path) {
    rows.Append(token, path);
    FakeLogits(rows.state(), logits);
    const auto value = fault ? fault(token, rows.length() - 1) : std::nullopt;
    if (value) std::fill(logits.begin(), logits.end(), *value);
  };
  for (size_t i = 0; i < request.tokens.size(); ++i) {
    next(request.tokens[i], MlaPath::kLatent);
    if (request.prompt_logprobs >= 0 && i + 1 < request.tokens.size())
      out.prompt_logprobs.push_back(
          Logprobs(logits, request.tokens[i + 1], 0, reference)->chosen.logprob);
  }
  TokenHistory history;
  history.AddPrompt(request.tokens);
  SamplingParams params = request.sampling;
  params.seed = SeedOf(request, choice);
  const StopConditions& stop = request.stop;
  while (std::ssize(out.tokens) < stop.max_tokens && rows.length() < max_tokens) {
    SampleInput input{
        .logits = logits, .params = &params, .history = &history, .machine = &reference};
    if (std::ssize(out.tokens) < stop.min_tokens) input.banned = stop.tokens;
    input.position = rows.length();
    input.logprobs = request.logprobs;
    const Result<SampledToken> drawn = Sample(input);
    if (!drawn) out.finish = FinishReason::kError;
    if (drawn && std::ranges::count(stop.tokens, drawn->token)) out.finish = FinishReason::kStop;
    if (out.finish != FinishReason::kLength) break;
    out.tokens.push_back(drawn->token);
    if (drawn->logprobs) out.logprobs.push_back(drawn->logprobs->chosen.logprob);
    history.AddGenerated(drawn->token);
    next(drawn->token, MlaPath::kAbsorbed);
  }
  return out;
}

}  // namespace latte::testing_support
