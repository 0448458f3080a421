// Writes the events of a request as the chunks of a stream: server-sent events of the OpenAI API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/request.h"

#include "src/openai/request.h"
#include "src/openai/response.h"
#include "src/text/tokenizer.h"

namespace latte {

// Thread-compatible.
class OpenAiStream {
 public:
  // As OpenAiAnswer::Body. The reply and the tokenizer must outlive it.
  OpenAiStream(const OpenAiReply& reply, const Tokenizer& tokenizer, std::string_view id,
               int64_t created);

  // Appends the chunks of an event of prompt i. `answer` has taken the event, with the result
  // `parts`.
  void Add(size_t i, const TokenEvent& event, const OpenAiParts& parts, const OpenAiAnswer& answer,
           std::string* out);

  // Appends the usage, if the request wants it, and [DONE].
  void Finish(const OpenAiUsage& usage, std::string* out) const;

 private:
  struct Choice {
    bool begun = false;
    int64_t text_offset = 0;  // of completions, in code points
  };

  void AddChat(size_t index, const TokenEvent& event, const OpenAiParts& parts,
               const OpenAiAnswer& answer, std::string* out);
  void AppendDelta(size_t index, const OpenAiParts& parts, std::string* out) const;
  void AppendCalls(size_t index, const std::vector<ToolEvent>& events, std::string* out) const;
  void AddText(size_t i, size_t index, const TokenEvent& event, const OpenAiUsage& usage,
               std::string* out);
  // A chunk is data: {…, "choices": [{"index": …, members}], …}: Begin, the members, End.
  void Begin(size_t index, std::string* out) const;
  void End(const OpenAiUsage& usage, std::string* out) const;
  void AppendPromptLogprobs(const TokenEvent& event, std::string* out) const;

  const OpenAiReply& reply_;
  const Tokenizer& tokenizer_;
  std::string id_;         // of the answer
  std::string beginning_;  // of every chunk, up to the choices
  std::vector<Choice> choices_;
};

}  // namespace latte
