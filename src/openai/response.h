// Converts events of the engine to response bodies of the OpenAI API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/base/json_out_fwd.h"
#include "src/openai/events/answer_splitter.h"
#include "src/openai/request.h"
#include "src/text/tokenizer.h"

namespace latte {

// One answer of a request, as far as it is generated.
struct OpenAiChoice {
  std::string text;
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;
  int64_t generated_tokens = 0;
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;
  std::optional<FinishReason> finish;
  AnswerSplitter splitter;  // of chats
};

// What an answer used, over all prompts and choices.
struct OpenAiUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t reasoning_tokens = 0;  // of them, inside <think>; of chats
  int64_t drafted_tokens = 0;    // guesses of generated tokens
  int64_t accepted_tokens = 0;   // of them, generated tokens
};

JsonOut UsageJson(OpenAiEndpoint endpoint, const OpenAiUsage& usage);

// Collects the events of one request. Thread-compatible.
class OpenAiAnswer {
 public:
  explicit OpenAiAnswer(OpenAiReply reply);

  // Returns what became certain of a chat's reasoning and content. The text of a stream is not kept.
  // Requires: an event of this request's prompt.
  AnswerSplitter::Parts Add(const TokenEvent& event, size_t prompt = 0);

  bool done() const { return unfinished_ == 0; }  // every choice has ended
  // error of the first choice that failed
  const std::optional<Error>& error() const { return error_; }
  const OpenAiReply& reply() const { return reply_; }
  const OpenAiUsage& usage() const { return usage_; }

  // `id` is unique among answers; `created` is in seconds since 1970. Requires: done(), no error.
  JsonOut Body(const Tokenizer& tokenizer, std::string_view id, int64_t created) const;

 private:
  AnswerSplitter::Parts Split(const TokenEvent& event, OpenAiChoice* choice);
  void Count(const TokenEvent& event, size_t prompt, OpenAiChoice* choice);
  JsonOut ChoiceJson(const Tokenizer& tokenizer, size_t index) const;

  OpenAiReply reply_;
  std::vector<OpenAiChoice> choices_;  // n for every prompt
  std::vector<OpenAiUsage> prompts_;   // only tokens of the prompt
  OpenAiUsage usage_;                  // the sum
  size_t unfinished_;                  // choices
  std::optional<Error> error_;
};

}  // namespace latte
