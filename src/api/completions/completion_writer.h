// Writes answers as /v1/chat/completions and /v1/completions do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/request.h"

#include "src/api/common/answer.h"
#include "src/api/common/answer_writer.h"
#include "src/api/common/request.h"
#include "src/text/tokenizer.h"

namespace latte {

// Thread-compatible.
class CompletionWriter final : public AnswerWriter {
 public:
  explicit CompletionWriter(AnswerWriterParts parts);

  // Appends the chunks of an event.
  void Add(const AnswerEvent& next, std::string* sse) override;
  // Appends the usage, if the request wants it, and [DONE].
  void Finish(const ApiAnswer& answer, std::string* sse) override;
  // An event with OpenAiError, then [DONE].
  void Fail(const Error& error, const ApiAnswer& answer, std::string* sse) override;
  std::string Body(const ApiAnswer& answer) const override;

 private:
  struct Choice {
    bool begun = false;
    int64_t text_offset = 0;  // of completions, in code points
  };

  void AddChat(const AnswerEvent& next, std::string* out);
  void AppendDelta(size_t index, const ApiPiece& piece, std::string* out) const;
  void AppendCalls(size_t index, const std::vector<ToolEvent>& events, std::string* out) const;
  void AddText(const AnswerEvent& next, std::string* out);
  // A chunk is data: {…, "choices": [{"index": …, members}], …}: Begin, the members, End.
  void Begin(size_t index, std::string* out) const;
  void End(const ApiUsage& usage, std::string* out) const;
  void AppendPromptLogprobs(const TokenEvent& event, std::string* out) const;

  AnswerWriterParts parts_;
  const ApiReply& reply_;
  const Tokenizer& tokenizer_;
  std::string beginning_;  // of every chunk, up to the choices
  std::vector<Choice> choices_;
};

}  // namespace latte
