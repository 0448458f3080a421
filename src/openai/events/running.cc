#include "src/openai/events/running.h"

#include <utility>

#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/openai/events/answer_writer.h"

namespace latte {

struct OpenAiRunning::State {
  State(OpenAiRequest parsed, const OpenAiModel* for_model, std::string unique, int64_t when)
      : requests(std::move(parsed.requests)),
        answer(std::move(parsed.reply)),
        writer(MakeAnswerWriter({answer.reply(), for_model->tokenizer, std::move(unique), when})) {}

  std::vector<Request> requests;
  OpenAiAnswer answer;
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
  const OpenAiParts parts = answer.Add(event, i);
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

JsonOut OpenAiRunning::Body() const { return state_->writer->Body(state_->answer); }

}  // namespace latte
