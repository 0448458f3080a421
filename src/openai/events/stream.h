// Writes the events of a request as the chunks of a stream: server-sent events of the OpenAI API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/openai/events/answer_splitter.h"
#include "src/openai/request.h"
#include "src/openai/response.h"
#include "src/text/tokenizer.h"

namespace latte {

// Thread-compatible.
class OpenAiStream {
 public:
  // As OpenAiAnswer::Body. The reply must outlive it.
  OpenAiStream(const OpenAiReply& reply, const Tokenizer& tokenizer, std::string_view id,
               int64_t created);

  // Appends the chunks of an event of prompt i. `usage`: of the request so far.
  void Add(size_t i, const TokenEvent& event, const OpenAiUsage& usage, std::string* out);

  // Appends the usage, if it is asked for, and [DONE].
  void Finish(const OpenAiUsage& usage, std::string* out) const;

 private:
  struct Choice {
    explicit Choice(bool in_thought) : splitter(in_thought) {}
    bool begun = false;
    AnswerSplitter splitter;  // of chats
    int64_t text_offset = 0;  // of completions, in code points
  };

  void AddChat(size_t index, const TokenEvent& event, const OpenAiUsage& usage, std::string* out);
  void AddText(size_t i, size_t index, const TokenEvent& event, const OpenAiUsage& usage,
               std::string* out);
  // data: {…, "choices": [{"index": …, MEMBERS}]}
  void Chunk(size_t index, std::string_view members, const OpenAiUsage& usage,
             std::string* out) const;
  std::string PromptLogprobsMember(const TokenEvent& event) const;

  const OpenAiReply& reply_;
  const Tokenizer& tokenizer_;
  std::string beginning_;  // of every chunk, up to the choices
  std::vector<Choice> choices_;
};

}  // namespace latte
