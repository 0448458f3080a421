#include "src/engine/request/request_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/random.h"
#include "src/base/range.h"
#include "src/engine/request/prompt_too_long.h"

namespace latte {
namespace {

Result<std::vector<int32_t>> PromptTokens(Request& request, const RequestRules& rules) {
  if (!request.tokens.empty()) return std::move(request.tokens);
  if (rules.tokenizer == nullptr)
    return InvalidArgument("prompt: expected token ids, found text; this engine has no tokenizer");
  return rules.tokenizer->Encode(request.prompt, {.add_bos = rules.tokenizer->adds_bos(),
                                                  .parse_special = request.parse_special});
}

Status CheckTokens(std::string_view field, std::span<const int32_t> tokens, int64_t vocab) {
  for (const int32_t token : tokens)
    if (token < 0 || token >= vocab)
      return InvalidArgument(
          fmt::format("{}: expected token ids in [0, {}), found {}", field, vocab, token));
  return {};
}

Status CheckIds(const Request& request, std::span<const int32_t> prompt, int64_t vocab) {
  LATTE_RETURN_IF_ERROR(CheckTokens("prompt", prompt, vocab));
  LATTE_RETURN_IF_ERROR(CheckTokens("stop token", request.stop.tokens, vocab));
  for (const auto& [token, bias] : request.sampling.logit_bias)
    LATTE_RETURN_IF_ERROR(CheckTokens("logit_bias", {&token, 1}, vocab));
  return {};
}

// Errors: kInvalidArgument for a prompt without tokens, or without room for an answer.
Status CheckLength(int64_t length, int64_t max_tokens) {
  if (length == 0) return InvalidArgument("the prompt is empty: expected at least one token");
  if (length >= max_tokens)
    return tl::unexpected(PromptTooLongError({.tokens = length, .max_tokens = max_tokens}));
  return {};
}

uint64_t SeedOfChoice(uint64_t seed, int choice) {
  return choice == 0 ? seed : Mix64(seed ^ Mix64(static_cast<uint64_t>(choice)));
}

// Where the stop strings of a chat count; none: everywhere.
std::optional<ContentFinder> ContentOf(const Request& request) {
  if (request.reasoning == "none" && request.call_format.empty()) return std::nullopt;
  return ContentFinder(request.reasoning == "begun", ToolFormatOf(request.call_format));
}

Sequence SequenceFor(Request& request, std::vector<int32_t> prompt, int64_t max_tokens) {
  Sequence out;
  const auto length = static_cast<int64_t>(prompt.size());
  const int64_t answer = std::max<int64_t>(1, request.stop.max_tokens);
  out.tokens = std::move(prompt);
  out.prompt_len = length;
  out.spec.salt = std::move(request.cache_salt);
  out.spec.max_len = length + std::min(answer, max_tokens - length);
  out.spec.priority = request.priority;
  out.spec.outputs = request.n;
  out.spec.reuses_prefix = request.prompt_logprobs < 0;
  return out;
}

}  // namespace

bool RequestState::ended() const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const auto& output) { return output->ended(); });
}

Output& RequestState::Fork(SequenceId sequence_id) {
  Output& out = *outputs.emplace_back(std::make_unique<Output>(*outputs.front()));
  out.choice = static_cast<int>(outputs.size()) - 1;
  out.params.seed = SeedOfChoice(request.sampling.seed, out.choice);
  out.sequence.spec.id = sequence_id;
  out.sequence.output = &out;
  return out;
}

Result<std::unique_ptr<RequestState>> MakeRequestState(Request request, const RequestRules& rules) {
  LATTE_RETURN_IF_ERROR(request.Validate());
  const EngineOptions& options = rules.settings->options;
  LATTE_RETURN_IF_ERROR(InRange("n", request.n, 1, options.max_sequences));
  if (rules.tokenizer == nullptr && !request.stop.strings.empty())
    return InvalidArgument("stop strings: expected none, as this engine has no tokenizer");
  LATTE_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, PromptTokens(request, rules));
  LATTE_RETURN_IF_ERROR(CheckIds(request, prompt, rules.config->vocab));
  LATTE_RETURN_IF_ERROR(CheckLength(static_cast<int64_t>(prompt.size()), options.max_tokens));

  auto state = std::make_unique<RequestState>();
  state->stop_token_ids = request.stop.tokens;
  if (!request.stop.ignore_eos)
    for (const int64_t eos : rules.config->eos)
      state->stop_token_ids.push_back(static_cast<int32_t>(eos));
  Output& output = *state->outputs.emplace_back(std::make_unique<Output>());
  output.state = state.get();
  output.params = request.sampling;
  if (HasPenalties(output.params)) output.history.AddPrompt(prompt);
  if (rules.tokenizer != nullptr)
    output.text.emplace(*rules.tokenizer, request.stop.strings, request.keep_special,
                        ContentOf(request));
  output.sequence = SequenceFor(request, std::move(prompt), options.max_tokens);
  output.sequence.output = &output;
  state->request = std::move(request);
  return state;
}

}  // namespace latte
