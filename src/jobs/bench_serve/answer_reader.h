// Reads the answer to one request and records when its parts arrived.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/http/client/client.h"
#include "src/http/client/sse.h"
#include "src/jobs/bench_serve/record.h"
#include "src/session/remote/answer_chunk.h"

namespace latte {

// Thread-compatible. Takes streams and whole bodies, as the response's type says.
class AnswerReader {
 public:
  // `planned_prompt` counts the prompt's tokens if the server does not.
  explicit AnswerReader(int64_t planned_prompt) { record_.prompt_tokens = planned_prompt; }

  void OnHead(const HttpResponse& head);
  void OnBody(std::string_view piece, double now_s);
  void OnEnd(const Status& status, HttpFailure failure, double now_s);

  ServeRecord& record() { return record_; }

 private:
  void OnEvent(std::string_view data, double now_s);
  void OnWhole(double now_s);
  void TakeUsage(const AnswerChunk& chunk);
  void SetError(std::string_view kind, std::string message);

  ServeRecord record_;
  HttpResponse head_;
  SseReader sse_;
  bool is_stream_ = false;
  bool finished_ = false;  // a reason for the end, or [DONE]
};

}  // namespace latte
