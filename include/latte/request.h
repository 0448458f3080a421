// Requests and their events: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/fields.h"
#include "latte/status.h"

namespace latte {
inline namespace v0_2 {

// The parameters of sampling. Order: logit_bias, penalties, temperature, min_p, top_k, top_p.
struct SamplingParams {
  double temperature = 1.0;  // 0: always the likeliest token
  int64_t top_k = 0;         // keep the k likeliest tokens; 0: all
  double top_p = 1.0;  // keep the likeliest tokens that together reach this probability; (0, 1]
  double min_p = 0.0;  // drop tokens below this share of the likeliest one's probability; [0, 1]
  // Divides positive logits and multiplies negative logits of tokens in the prompt or the answer
  // (Keskar et al. 2019, arXiv 1909.05858); 1: off; (0, 100]
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;  // subtracted from the logit of every token of the answer; [−2, 2]
  double frequency_penalty = 0.0;                     // the same, once per occurrence; [−2, 2]
  std::vector<std::pair<int32_t, float>> logit_bias;  // (token, added to its logit); ≤ 1024
  uint64_t seed = 0;                                  // the result depends only on (seed, position)

  // Errors: kInvalidArgument naming the field, its value and the accepted range.
  [[nodiscard]] Status Validate() const;

  // The list of fields; latte/fields.h. A new parameter is a member above and an entry below.
  template <class Visit>
  static void VisitFields(Visit&& visit);
};

template <class Visit>
void SamplingParams::VisitFields(Visit&& visit) {
  constexpr std::string_view kFile = "generation_config.json";
  visit(
      Field{.name = "temperature",
            .help = "0: always the likeliest token",
            .range = {0, 100},
            .fallback = "the checkpoint's generation_config.json",
            .group = "Sampling"},
      [](auto& p) -> auto& { return p.temperature; });
  visit(
      Field{.name = "top_k",
            .help = "sample from the K likeliest tokens; 0: all",
            .range = {.low = 0},
            .expected = "0 (all) or more",
            .fallback = kFile},
      [](auto& p) -> auto& { return p.top_k; });
  visit(
      Field{.name = "top_p",
            .help = "sample from the likeliest tokens that reach P together",
            .range = {0, 1, /*above_low=*/true},
            .fallback = kFile},
      [](auto& p) -> auto& { return p.top_p; });
  visit(
      Field{.name = "min_p",
            .help = "drop tokens below P times the likeliest one",
            .range = {0, 1},
            .fallback = kFile},
      [](auto& p) -> auto& { return p.min_p; });
  visit(
      Field{.name = "repetition_penalty",
            .help = "divides positive logits of tokens in the text, multiplies negative ones",
            .range = {0, 100, /*above_low=*/true},
            .fallback = "generation_config.json, else 1: off"},
      [](auto& p) -> auto& { return p.repetition_penalty; });
  visit(
      Field{.name = "presence_penalty",
            .help = "subtracted from the logits of tokens in the answer",
            .range = {-2, 2}},
      [](auto& p) -> auto& { return p.presence_penalty; });
  visit(
      Field{.name = "frequency_penalty",
            .help = "subtracted once for each occurrence of a token in the answer",
            .range = {-2, 2}},
      [](auto& p) -> auto& { return p.frequency_penalty; });
  visit(
      Field{.name = "logit_bias",
            .help = "ID:VALUE,...: add to the logits of tokens, -100 (never) to 100 (always)",
            .range = {-100, 100},
            .most = 1024},
      [](auto& p) -> auto& { return p.logit_bias; },
      [](auto& c) {
        return CArray{c.logit_bias, c.logit_bias_count, "logit_bias", "logit_bias_count"};
      });
  visit(
      Field{.name = "seed",
            .help = "same seed, same text; -1: a random one",
            .fallback = "a random one that is reported; 0 in the library",
            .flag = "-s,--seed"},
      [](auto& p) -> auto& { return p.seed; });
}

// The conditions that end an answer.
struct StopConditions {
  int64_t max_tokens = 256;          // most generated tokens; the end of the context also ends it
  int64_t min_tokens = 0;            // before them neither stop tokens nor stop strings end it
  bool ignore_eos = false;           // the model's own end-of-sequence tokens do not end it
  std::vector<int32_t> tokens;       // ids that end it; ≤ 128
  std::vector<std::string> strings;  // texts that end it and are left out; ≤ 16 of ≤ 256 bytes

  // Errors: as SamplingParams::Validate.
  [[nodiscard]] Status Validate() const;

  // The list of fields; latte/fields.h. A new condition is a member above and an entry below.
  template <class Visit>
  static void VisitFields(Visit&& visit);
};

template <class Visit>
void StopConditions::VisitFields(Visit&& visit) {
  visit(
      Field{.name = "max_tokens",
            .help = "maximum tokens to generate",
            .range = {.low = 0},
            .expected = "0 or more",
            .flag = "-n,--max-new-tokens",
            .group = "Stopping"},
      [](auto& s) -> auto& { return s.max_tokens; });
  visit(
      Field{.name = "min_tokens",
            .help = "minimum tokens before the answer may end; at most max_tokens",
            .range = {.low = 0},
            .expected = "0 or more"},
      [](auto& s) -> auto& { return s.min_tokens; });
  visit(
      Field{.name = "ignore_eos", .help = "continue after the model's end-of-sequence tokens"},
      [](auto& s) -> auto& { return s.ignore_eos; });
  visit(
      Field{.name = "tokens",
            .help = "token ids that end the answer",
            .most = 128,
            .flag = kNoName,
            .json = "stop_token_ids"},
      [](auto& s) -> auto& { return s.tokens; },
      [](auto& c) {
        return CArray{c.stop_tokens, c.stop_token_count, "stop_tokens", "stop_token_count"};
      });
  visit(
      Field{.name = "strings",
            .help = "stop before this text, of 1 to 256 bytes; may be given several times",
            .most = 16,
            .flag = "--stop",
            .json = "stop"},
      [](auto& s) -> auto& { return s.strings; },
      [](auto& c) {
        return CArray{c.stop_strings, c.stop_string_count, "stop_strings", "stop_string_count"};
      });
}

// Names a request to its engine: Request::id.
using RequestId = uint64_t;

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
  // The grammar of the answer's text, in the notation grammar_syntax; empty: any text. Needs a
  // build with xgrammar and a tokenizer.
  std::string grammar;
  std::string grammar_syntax = "json-schema";
  // Stop strings count only in the content of a chat's answer, not in its reasoning or its calls.
  std::string reasoning =
      "none";               // "possible": it may begin with <think>; "begun": it begins inside
  std::string call_format;  // format of its calls: "deepseek_v3", "kimi_k2" …; empty: none
  std::string cache_salt;   // prefixes are shared only among requests with equal salt
  RequestId id = 0;         // greater than the ids of earlier requests; 0: the engine's next
  uint64_t user_data = 0;   // the caller's own name for the request, echoed by its events

  // Checks everything that does not need a model. Errors: as SamplingParams::Validate.
  [[nodiscard]] Status Validate() const;

  // The list of fields, except prompt, tokens, sampling and stop; latte/fields.h.
  template <class Visit>
  static void VisitFields(Visit&& visit);
};

template <class Visit>
void Request::VisitFields(Visit&& visit) {
  visit(
      Field{.name = "parse_special",
            .help = "text of a special token in the prompt becomes that token",
            .flag = "--special",
            .json = kNoName,
            .group = "Prompt"},
      [](auto& r) -> auto& { return r.parse_special; });
  visit(
      Field{.name = "n", .help = "answers", .range = {1, 64}, .flag = kNoName, .group = "Output"},
      [](auto& r) -> auto& { return r.n; });
  visit(
      Field{.name = "logprobs",
            .help = "alternatives reported with every token; -1: none, no logprob",
            .range = {-1, 20},
            .expected = "a number in [0, 20], or -1 for none",
            .flag = kNoName},
      [](auto& r) -> auto& { return r.logprobs; });
  visit(
      Field{.name = "prompt_logprobs",
            .help = "the same for tokens of the prompt",
            .range = {-1, 20},
            .expected = "a number in [0, 20], or -1 for none",
            .flag = kNoName},
      [](auto& r) -> auto& { return r.prompt_logprobs; });
  visit(
      Field{.name = "echo",
            .help = "the prompt's text begins the first event's text",
            .flag = kNoName},
      [](auto& r) -> auto& { return r.echo; });
  visit(
      Field{.name = "keep_special",
            .help = "show special tokens in the answer instead of hiding them",
            .json = kNoName},
      [](auto& r) -> auto& { return r.keep_special; });
  visit(
      Field{.name = "priority", .help = "lower is served first", .flag = kNoName},
      [](auto& r) -> auto& { return r.priority; });
  visit(
      Field{.name = "grammar",
            .help = "grammar of the answer: a JSON schema, or the notation of --grammar-syntax",
            .may_be_empty = true,
            .json = kNoName,
            .group = "Structured answers",
            .value = "TEXT"},
      [](auto& r) -> auto& { return r.grammar; });
  visit(
      Field{.name = "grammar_syntax",
            .help = "notation of --grammar",
            .choices = "json-schema, regex, ebnf, lark or structural-tag",
            .json = kNoName},
      [](auto& r) -> auto& { return r.grammar_syntax; });
  visit(
      Field{.name = "reasoning",
            .help =
                "of a chat: possible, if the answer may begin with <think>; begun, if it begins "
                "inside: stop strings do not count there",
            .choices = "none, possible or begun",
            .flag = kNoName,
            .json = kNoName},
      [](auto& r) -> auto& { return r.reasoning; }, OnlyInCpp());
  visit(
      Field{.name = "call_format",
            .help = "of a chat: how the answer writes calls, where stop strings do not count",
            .choices = "deepseek_v3, deepseek_v3.1, deepseek_v3.2, kimi_k2 or glm",
            .may_be_empty = true,
            .flag = kNoName,
            .json = kNoName},
      [](auto& r) -> auto& { return r.call_format; }, OnlyInCpp());
  visit(
      Field{.name = "cache_salt",
            .help = "prefixes are shared only among requests with equal salt",
            .may_be_empty = true,
            .flag = kNoName},
      [](auto& r) -> auto& { return r.cache_salt; });
  visit(
      Field{.name = "id",
            .help = "greater than the ids of earlier requests; 0: the engine's next",
            .flag = kNoName,
            .json = kNoName},
      [](auto& r) -> auto& { return r.id; }, OnlyInCpp());
  visit(
      Field{.name = "user_data",
            .help = "the caller's own name for the request, echoed by its events",
            .flag = kNoName,
            .json = kNoName},
      [](auto& r) -> auto& { return r.user_data; });
}

enum class FinishReason {
  kStop,       // an end-of-sequence token, a stop token or a stop string
  kLength,     // the token limit or the end of the context
  kCancelled,  // by the caller
  kError,      // by TokenEvent::error; other requests continue
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
  uint64_t user_data = 0;                      // Request::user_data
  int choice = 0;                              // which of n answers
  std::optional<int32_t> token;                // none: the event only reports the end
  std::string text;                            // final text: whole code points, no part of a stop
                                               // string, special tokens only with keep_special
  std::optional<TokenLogprobs> logprobs;       // of `token`
  std::vector<TokenLogprobs> prompt_logprobs;  // of prompt tokens 1, 2, …; before the first token
  int64_t prompt_tokens = 0;                   // of the request
  int64_t cached_tokens = 0;                   // of them, found in the prefix cache
  double queue_seconds = 0;                    // from Submit to the first step of the prompt
  double prefill_seconds = 0;                  // from there to the first token
  int64_t generated_tokens = 0;                // of this answer, this one included
  int64_t drafted_tokens = 0;                  // guesses of its tokens that steps computed
  int64_t accepted_tokens = 0;                 // of them, tokens of the answer
  std::optional<FinishReason> finish;          // the answer's last event
  std::string stop_string;                     // the one that ended the answer; empty: none did
  Error error;                                 // meaningful with kError
};

}  // namespace v0_2
}  // namespace latte
