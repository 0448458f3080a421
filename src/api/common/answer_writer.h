// Writes answers in the format of an API. ApiAnswer (answer.h) collects the content of an answer; a
// writer only formats it, as server-sent events while the answer is generated, or as one body. Each
// API has its own writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "latte/request.h"

#include "src/api/common/answer.h"
#include "src/base/json_out_fwd.h"
#include "src/text/tokenizer.h"

namespace latte {

// One event of the engine and what became certain with it. `answer` has taken the event.
struct AnswerEvent {
  size_t prompt = 0;  // of the request's prompts
  const TokenEvent& event;
  const ApiPiece& piece;  // of chats: reasoning, content and calls
  const ApiAnswer& answer;

  size_t choice() const;  // index among the choices of the answer
};

// Thread-compatible. `sse`: server-sent events are appended to it, each whole with its blank line.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // A stream: appends the events of `next`. Requires: no error so far.
  virtual void Add(const AnswerEvent& next, std::string* sse) = 0;
  // Ends a stream. Called once after the last Add, with answer.done().
  virtual void Finish(const ApiAnswer& answer, std::string* sse) = 0;
  // Ends a stream with an error. Called at any time before Finish, even before the first Add.
  virtual void Fail(const Error& error, const ApiAnswer& answer, std::string* sse) = 0;
  // A stream that waits says that it lives: appends what a client reads as nothing. Any number of
  // times before, between and after Add, but not after the end.
  virtual void KeepAlive(std::string* sse);

  // The whole answer. Requires: answer.done(), no error.
  virtual std::string Body(const ApiAnswer& answer) const = 0;
};

// The data that a writer is made from. All that is referred to must outlive the writer.
struct AnswerWriterParts {
  const ApiReply& reply;
  const Tokenizer& tokenizer;
  std::string id;       // unique among answers
  int64_t created = 0;  // seconds since 1970
};

}  // namespace latte
