#include "src/engine/run/generate.h"

#include <algorithm>
#include <chrono>

#include "src/engine/sampling/sampler.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<GenerateResult> Generate(Session& session, std::span<const int32_t> prompt,
                                const GenerateOptions& options) {
  LATTE_RETURN_IF_ERROR(options.sampling.Validate());
  GenerateResult result;
  const Clock::time_point start = Clock::now();
  LATTE_RETURN_IF_ERROR(session.Prompt(prompt));
  TokenHistory history;
  history.AddPrompt(session.tokens());
  const std::vector<int32_t> stop(options.stop_tokens.begin(), options.stop_tokens.end());
  Clock::time_point first_token = Clock::now();
  while (static_cast<int64_t>(result.tokens.size()) < options.max_new_tokens) {
    const bool may_stop = static_cast<int64_t>(result.tokens.size()) >= options.min_new_tokens;
    LATTE_ASSIGN_OR_RETURN(const Drawn drawn,
                           Sample({.logits = session.LastLogits(),
                                   .params = &options.sampling,
                                   .history = &history,
                                   .banned = std::span(stop).first(may_stop ? 0 : stop.size()),
                                   .position = session.length(),
                                   .isa = session.isa()}));
    const int32_t token = drawn.token;
    if (result.tokens.empty()) {
      first_token = Clock::now();
      result.prompt_seconds = SecondsSince(start);
    }
    if (std::find(stop.begin(), stop.end(), token) != stop.end()) {
      result.reason = FinishReason::kStop;
      break;
    }
    result.tokens.push_back(token);
    history.AddGenerated(token);
    if (options.on_token && !options.on_token(token)) break;
    const bool full = session.length() >= session.options().max_tokens;
    if (full || static_cast<int64_t>(result.tokens.size()) == options.max_new_tokens) break;
    LATTE_RETURN_IF_ERROR(session.Append(token));
  }
  result.generate_seconds = SecondsSince(first_token);
  return result;
}

}  // namespace latte
