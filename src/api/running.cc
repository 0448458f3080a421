#include "src/api/running.h"

#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/api/common/answer_writer.h"
#include "src/api/common/json_text.h"
#include "src/api/completions/logprobs.h"

namespace latte {

namespace {

// The bytes that an event adds at most to the body of an answer. /v1/responses may write reasoning
// twice. A stream passes everything on, but for what comes with its first event.
int64_t AddedBytes(const TokenEvent& event, const OpenAiReply& reply, const Tokenizer& tokenizer) {
  int64_t bytes = MaxLogprobsBytes(event.prompt_logprobs, tokenizer);
  if (reply.stream) return bytes;
  const int64_t times = reply.endpoint == OpenAiEndpoint::kResponses ? 2 : 1;
  bytes += times * static_cast<int64_t>(JsonString(event.text).size());
  if (event.logprobs) bytes += MaxLogprobsBytes({&*event.logprobs, 1}, tokenizer);
  return bytes;
}

Error AnswerTooLong(int64_t max_bytes) {
  return {Code::kInvalidArgument,
          fmt::format("the answer has grown beyond {} bytes, the most that are collected; ask for "
                      "fewer choices, log-probabilities or tokens, or for a stream",
                      max_bytes)};
}

}  // namespace

struct OpenAiRunning::State {
  State(OpenAiRequest parsed, const OpenAiModel* for_model, std::string unique, int64_t when)
      : requests(std::move(parsed.requests)),
        tokenizer(for_model->tokenizer),
        answer(std::move(parsed.reply)),
        writer(MakeAnswerWriter({answer.reply(), for_model->tokenizer, std::move(unique), when})) {}

  std::vector<Request> requests;
  const Tokenizer& tokenizer;
  OpenAiAnswer answer;
  int64_t bytes = 0;  // of the body, at most
  std::unique_ptr<AnswerWriter> writer;
};

OpenAiRunning::OpenAiRunning(OpenAiRequest request, const OpenAiModel* model, std::string id,
                             int64_t created)
    : state_(std::make_unique<State>(std::move(request), model, std::move(id), created)) {}
OpenAiRunning::OpenAiRunning(OpenAiRunning&&) noexcept = default;
OpenAiRunning& OpenAiRunning::operator=(OpenAiRunning&&) noexcept = default;
OpenAiRunning::~OpenAiRunning() = default;

size_t OpenAiRunning::prompts() const { return state_->requests.size(); }

Request OpenAiRunning::TakePrompt(size_t i) { return std::move(state_->requests[i]); }

void OpenAiRunning::Add(size_t i, const TokenEvent& event, std::string* sse) {
  LATTE_CHECK(!done(), "an event after the end of a request for {}", reply().model);
  OpenAiAnswer& answer = state_->answer;
  const int64_t max_bytes = answer.reply().max_answer_bytes;
  state_->bytes += AddedBytes(event, answer.reply(), state_->tokenizer);
  if (max_bytes > 0 && state_->bytes > max_bytes) answer.Fail(AnswerTooLong(max_bytes));
  const OpenAiParts parts = answer.error() ? OpenAiParts() : answer.Add(event, i);
  if (!answer.reply().stream) return;
  if (answer.error()) return state_->writer->Fail(*answer.error(), answer, sse);
  state_->writer->Add({i, event, parts, answer}, sse);
  if (answer.done()) state_->writer->Finish(answer, sse);
}

void OpenAiRunning::Fail(const Error& error, std::string* sse) {
  state_->writer->Fail(error, state_->answer, sse);
}

void OpenAiRunning::KeepAlive(std::string* sse) { state_->writer->KeepAlive(sse); }

bool OpenAiRunning::done() const { return state_->answer.error() || state_->answer.done(); }
const std::optional<Error>& OpenAiRunning::error() const { return state_->answer.error(); }
const OpenAiReply& OpenAiRunning::reply() const { return state_->answer.reply(); }
OpenAiUsage OpenAiRunning::usage() const { return state_->answer.usage(); }

std::string OpenAiRunning::Body() const { return state_->writer->Body(state_->answer); }

}  // namespace latte
