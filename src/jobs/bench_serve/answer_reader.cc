#include "src/jobs/bench_serve/answer_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/session/remote/api_server.h"

namespace latte {

void AnswerReader::OnHead(const HttpResponse& head) {
  head_ = head;
  is_stream_ = IsEventStream(head_);
}

void AnswerReader::OnBody(std::string_view piece, double now_s) {
  if (!is_stream_) {
    head_.body += piece;
    return;
  }
  if (!record_.ok()) return;
  const Status read = sse_.Add(piece, [&](const SseEvent& event) { OnEvent(event.data, now_s); });
  if (!read) SetError("bad event", read.error().message);
}

void AnswerReader::OnEvent(std::string_view data, double now_s) {
  if (!record_.ok()) return;
  if (data == kAnswerDone) {
    finished_ = true;
    return;
  }
  const Result<AnswerChunk> chunk = ParseAnswerChunk(data);
  if (!chunk) {
    const bool reported = chunk.error().code == Code::kUnavailable;
    return SetError(reported ? "error in the stream" : "bad event", chunk.error().message);
  }
  TakeUsage(*chunk);
  if (!chunk->finish_reason.empty()) finished_ = true;
  if (!chunk->is_token()) return;
  record_.event_s.push_back(now_s);
  record_.end_s = now_s;
}

void AnswerReader::OnEnd(const Status& status, HttpFailure failure, double now_s) {
  if (record_.event_s.empty()) record_.end_s = now_s;
  if (!record_.ok()) return;
  if (!status) return SetError(HttpFailureName(failure), status.error().message);
  if (head_.status != 200)
    return SetError(fmt::format("HTTP {}", head_.status), StatusError(head_).message);
  if (!is_stream_) return OnWhole(now_s);
  if (!finished_ && record_.event_s.empty())
    return SetError("empty answer", "the stream ended without a text, a reason or [DONE]");
  if (!record_.counted) record_.output_tokens = std::ssize(record_.event_s);
}

void AnswerReader::OnWhole(double now_s) {
  record_.end_s = now_s;
  const Result<AnswerChunk> answer = ParseAnswerChunk(head_.body);
  if (!answer) return SetError("bad answer", answer.error().message);
  if (!answer->has_choice) return SetError("bad answer", "the body has no choice");
  TakeUsage(*answer);
}

void AnswerReader::TakeUsage(const AnswerChunk& chunk) {
  if (!chunk.usage) return;
  record_.counted = true;
  record_.prompt_tokens = chunk.usage->prompt_tokens;
  record_.output_tokens = chunk.usage->completion_tokens;
  record_.cached_tokens = chunk.usage->cached_tokens;
}

void AnswerReader::SetError(std::string_view kind, std::string message) {
  record_.error_kind = kind;
  record_.error = std::move(message);
}

}  // namespace latte
