#include "src/api/running.h"

#include <utility>

#include <fmt/format.h>

#include "src/api/common/answer_writer.h"
#include "src/api/common/json_text.h"
#include "src/api/completions/completion_writer.h"
#include "src/api/completions/logprobs.h"
#include "src/api/messages/writer.h"
#include "src/api/responses/writer.h"
#include "src/base/check.h"

namespace latte {

namespace {

// The writer of the API that the endpoint belongs to.
std::unique_ptr<AnswerWriter> MakeAnswerWriter(AnswerWriterParts parts) {
  switch (parts.reply.endpoint) {
    case ApiEndpoint::kChat:
    case ApiEndpoint::kCompletions:
      break;
    case ApiEndpoint::kResponses:
      return std::make_unique<ResponsesWriter>(std::move(parts));
    case ApiEndpoint::kMessages:
      return std::make_unique<AnthropicWriter>(std::move(parts));
  }
  return std::make_unique<CompletionWriter>(std::move(parts));
}

// The bytes that an event adds at most to the body of an answer. /v1/responses may write reasoning
// twice. A stream passes everything on, but for what comes with its first event.
int64_t AddedBytes(const TokenEvent& event, const ApiReply& reply, const Tokenizer& tokenizer) {
  int64_t bytes = MaxLogprobsBytes(event.prompt_logprobs, tokenizer);
  if (reply.stream) return bytes;
  const int64_t times = reply.endpoint == ApiEndpoint::kResponses ? 2 : 1;
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

struct ApiRunning::State {
  State(ApiRequest parsed, const ApiModel* for_model, std::string unique, int64_t when)
      : requests(std::move(parsed.requests)),
        tokenizer(for_model->tokenizer),
        answer(std::move(parsed.reply)),
        writer(MakeAnswerWriter({answer.reply(), for_model->tokenizer, std::move(unique), when})) {}

  std::vector<Request> requests;
  const Tokenizer& tokenizer;
  ApiAnswer answer;
  int64_t bytes = 0;  // of the body, at most
  std::unique_ptr<AnswerWriter> writer;
};

ApiRunning::ApiRunning(ApiRequest request, const ApiModel* model, std::string id, int64_t created)
    : state_(std::make_unique<State>(std::move(request), model, std::move(id), created)) {}
ApiRunning::ApiRunning(ApiRunning&&) noexcept = default;
ApiRunning& ApiRunning::operator=(ApiRunning&&) noexcept = default;
ApiRunning::~ApiRunning() = default;

size_t ApiRunning::prompts() const { return state_->requests.size(); }

Request ApiRunning::TakePrompt(size_t i) { return std::move(state_->requests[i]); }

void ApiRunning::Add(size_t i, const TokenEvent& event, std::string* sse) {
  LATTE_CHECK(!done(), "an event after the end of a request for {}", reply().model);
  ApiAnswer& answer = state_->answer;
  const int64_t max_bytes = answer.reply().max_answer_bytes;
  state_->bytes += AddedBytes(event, answer.reply(), state_->tokenizer);
  if (max_bytes > 0 && state_->bytes > max_bytes) answer.Fail(AnswerTooLong(max_bytes));
  const ApiPiece piece = answer.error() ? ApiPiece() : answer.Add(event, i);
  if (!answer.reply().stream) return;
  if (answer.error()) return state_->writer->Fail(*answer.error(), answer, sse);
  state_->writer->Add({i, event, piece, answer}, sse);
  if (answer.done()) state_->writer->Finish(answer, sse);
}

void ApiRunning::Fail(const Error& error, std::string* sse) {
  state_->writer->Fail(error, state_->answer, sse);
}

void ApiRunning::KeepAlive(std::string* sse) { state_->writer->KeepAlive(sse); }

bool ApiRunning::done() const { return state_->answer.error() || state_->answer.done(); }
const std::optional<Error>& ApiRunning::error() const { return state_->answer.error(); }
const ApiReply& ApiRunning::reply() const { return state_->answer.reply(); }
ApiUsage ApiRunning::usage() const { return state_->answer.usage(); }

std::string ApiRunning::Body() const { return state_->writer->Body(state_->answer); }

}  // namespace latte
