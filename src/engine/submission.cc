#include "src/engine/submission.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/engine/in_range.h"

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

Status CheckIds(const Submission& s, int64_t vocab) {
  LATTE_RETURN_IF_ERROR(CheckTokens("prompt", s.prompt, vocab));
  LATTE_RETURN_IF_ERROR(CheckTokens("stop token", s.request.stop.tokens, vocab));
  for (const auto& [token, bias] : s.request.sampling.logit_bias)
    LATTE_RETURN_IF_ERROR(CheckTokens("logit_bias", {&token, 1}, vocab));
  return {};
}

}  // namespace

std::string Submission::EchoText(const Tokenizer* tokenizer) const {
  if (!request.prompt.empty() || tokenizer == nullptr) return request.prompt;
  return tokenizer->Decode(prompt).value_or("");
}

Result<Submission> Prepare(Request request, const RequestRules& rules) {
  LATTE_RETURN_IF_ERROR(request.Validate());
  const EngineOptions& options = rules.settings->options;
  LATTE_RETURN_IF_ERROR(InRange("n", request.n, 1, options.max_sequences));
  if (rules.tokenizer == nullptr && !request.stop.strings.empty())
    return InvalidArgument("stop strings: expected none, as this engine has no tokenizer");
  Submission out;
  LATTE_ASSIGN_OR_RETURN(out.prompt, PromptTokens(request, rules));
  out.request = std::move(request);
  if (out.prompt.empty())
    return InvalidArgument("the prompt is empty: expected at least one token");
  LATTE_RETURN_IF_ERROR(CheckIds(out, rules.config->vocab));
  const auto length = static_cast<int64_t>(out.prompt.size());
  if (length >= options.max_tokens)
    return InvalidArgument(fmt::format(
        "the prompt has {} tokens, but prompt and answer have room for {} together; shorten the "
        "prompt",
        length, options.max_tokens));
  out.ends = out.request.stop.tokens;
  if (!out.request.stop.ignore_eos)
    for (const int64_t eos : rules.config->eos) out.ends.push_back(static_cast<int32_t>(eos));
  const int64_t answer = std::max<int64_t>(1, out.request.stop.max_tokens);
  out.max_len = length + std::min(answer, options.max_tokens - length);
  return out;
}

}  // namespace latte
