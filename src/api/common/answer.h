// Collects the events of a request into an answer. answer_writer.h writes the answer in the format
// of an API.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/request.h"

#include "src/api/common/request.h"
#include "src/chat/answer_splitter.h"
#include "src/chat/tools/tool_call_parser.h"

namespace latte {

// A call of a function in an answer.
struct ApiCall {
  std::string id;  // that the model's format has, or empty; see CallId
  std::string name;
  std::string arguments;  // JSON text
};

// The whole message of an answer to a chat.
struct ApiMessage {
  std::optional<std::string> reasoning;  // "": it ended at once
  std::string content;
  std::vector<ApiCall> calls;
};

// What became certain of a chat's answer with one event.
struct ApiPiece {
  std::string reasoning;
  std::string content;
  std::vector<ToolEvent> calls;  // kCallBegin and kArguments
};

// One answer of a request, as far as it is generated.
struct ApiChoice {
  std::string text;  // of completions
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;
  int64_t generated_tokens = 0;
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;
  std::optional<FinishReason> finish;
  std::string stop_string;  // that ended it; empty: none did
  AnswerSplitter splitter;  // of chats
  ApiPiece whole;           // the answer of chats that are no streams
  bool opened = false;      // the text of a chat has a <think> at its beginning
  size_t begun_calls = 0;
  size_t ended_calls = 0;
  std::set<std::string> call_ids;  // that the model gave
};

// The id of call `call` of choice `choice`. `of_format`: the id that the format has, or empty.
// `id`: of the answer.
std::string CallId(std::string_view of_format, std::string_view id, size_t choice, size_t call);

// What an answer used, over all prompts and choices.
struct ApiUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t reasoning_tokens = 0;  // of them, inside <think>; of chats
  int64_t drafted_tokens = 0;    // guesses of generated tokens
  int64_t accepted_tokens = 0;   // of them, generated tokens
};

// Collects the events of one request. Thread-compatible.
class ApiAnswer {
 public:
  explicit ApiAnswer(ApiReply reply);

  // Returns what became certain of a chat's reasoning, content and calls. The text of a stream is
  // not kept. Requires: an event of this request's prompt.
  ApiPiece Add(const TokenEvent& event, size_t prompt = 0);

  // Ends the answer with an error that is not of an event. The first one counts.
  void Fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  size_t choices() const { return choices_.size(); }  // of all prompts, n for each in order
  // Text and logprobs are empty in a stream.
  const ApiChoice& choice(size_t index) const { return choices_[index]; }

  // The message of a chat's choice. Requires: it has ended, not a stream.
  ApiMessage Message(size_t index) const;

  // Why choice `index` ended, in the words of the API. Requires: it has ended.
  std::string_view FinishName(size_t index) const;

  bool done() const { return unfinished_ == 0; }  // every choice has ended
  // error of the first choice that failed
  const std::optional<Error>& error() const { return error_; }
  const ApiReply& reply() const { return reply_; }
  const ApiUsage& usage() const { return usage_; }

 private:
  ApiPiece Split(const TokenEvent& event, ApiChoice* choice);
  void ReadEvents(std::vector<ToolEvent> events, ApiChoice* choice, ApiPiece* out) const;
  void Count(const TokenEvent& event, size_t prompt, ApiChoice* choice);

  ApiReply reply_;
  std::vector<ApiChoice> choices_;  // n for every prompt
  std::vector<ApiUsage> prompts_;   // only tokens of the prompt
  ApiUsage usage_;                  // the sum
  size_t unfinished_;               // choices
  std::optional<Error> error_;
};

}  // namespace latte
