// Requests and their events: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/status.h"

namespace latte {

// How the next token is sampled. Order: logit_bias, penalties, temperature, min_p, top_k, top_p.
struct SamplingParams {
  double temperature = 1.0;  // 0: always the likeliest token
  int64_t top_k = 0;         // keep the k likeliest tokens; 0: all
  double top_p = 1.0;  // keep the likeliest tokens that together reach this probability; (0, 1]
  double min_p = 0.0;  // drop tokens below this share of the likeliest one's probability; [0, 1]
  // Logits of tokens that the prompt or the answer has are divided by it where they are positive,
  // multiplied where they are negative (Keskar et al. 2019, arXiv 1909.05858); 1: off; (0, 100]
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;   // taken off the logit of every token the answer has; [−2, 2]
  double frequency_penalty = 0.0;  // the same, once per occurrence; [−2, 2]
  std::vector<std::pair<int32_t, float>> logit_bias;  // (token, added to its logit); ≤ 1024
  uint64_t seed = 0;                                  // the result depends only on (seed, position)

  // Errors: kInvalidArgument naming the field, its value and the accepted range.
  [[nodiscard]] Status Validate() const;
};

// The conditions that end an answer.
struct StopConditions {
  int64_t max_tokens = 256;          // most generated tokens; the end of the context also ends it
  int64_t min_tokens = 0;            // before them neither stop tokens nor stop strings end it
  bool ignore_eos = false;           // the model's own end-of-sequence tokens do not end it
  std::vector<int32_t> tokens;       // ids that end it; ≤ 128
  std::vector<std::string> strings;  // texts that end it and are left out; ≤ 16 of ≤ 256 bytes

  // Errors: as SamplingParams::Validate.
  [[nodiscard]] Status Validate() const;
};

// One prompt and its settings.
struct Request {
  std::string prompt;           // text; or
  std::vector<int32_t> tokens;  // ids, which go before `prompt` if not empty
  bool parse_special = false;   // special-token text in `prompt` means the token
  SamplingParams sampling;
  StopConditions stop;
  int n = 1;                  // answers; answer i draws with a seed made of (seed, i); 1 … 64
  int logprobs = -1;          // alternatives for every token, 0 … 20; −1: none, no logprob
  int prompt_logprobs = -1;   // the same for tokens of the prompt
  bool echo = false;          // the prompt's text begins the first event's text
  bool keep_special = false;  // special tokens are part of the answer's text
  int priority = 0;           // lower is served first
  std::string cache_salt;     // prefixes are shared only among requests with equal salt
  uint64_t user_data = 0;     // the caller's own name for the request, echoed by its events

  // Checks everything that does not need a model. Errors: as SamplingParams::Validate.
  [[nodiscard]] Status Validate() const;
};

using RequestId = uint64_t;

enum class FinishReason {
  kStop,       // an end-of-sequence token, a stop token or a stop string
  kLength,     // the token limit or the end of the context
  kCancelled,  // by the caller
  kError,      // by TokenEvent::error; other requests go on
};

std::string_view Name(FinishReason reason);  // "stop"

// The natural logarithm of a token's probability, before sampling parameters changed it.
struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

// A token with its likeliest alternatives, likeliest first.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
};

// One step forward of one answer.
struct TokenEvent {
  RequestId request = 0;
  uint64_t user_data = 0;                 // Request::user_data
  int choice = 0;                         // which of n answers
  std::optional<int32_t> token;           // none: the event only reports the end
  std::string text;                       // what became certain: whole code points, no part of a
                                          // stop string, no special token but with keep_special
  std::optional<TokenLogprobs> logprobs;  // of `token`
  std::vector<TokenLogprobs> prompt_logprobs;  // of prompt tokens 1, 2, …; before the first token
  int64_t prompt_tokens = 0;                   // of the request
  int64_t cached_tokens = 0;                   // of them, found in the prefix cache
  int64_t generated_tokens = 0;                // of this answer, this one included
  std::optional<FinishReason> finish;          // the answer's last event
  Error error;                                 // meaningful with kError
};

}  // namespace latte
