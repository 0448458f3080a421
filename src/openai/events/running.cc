#include "src/openai/events/running.h"

#include <utility>

#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/openai/error.h"
#include "src/openai/events/stream.h"

namespace latte {

struct OpenAiRunning::State {
  State(OpenAiRequest parsed, const OpenAiModel* for_model, std::string unique, int64_t when)
      : requests(std::move(parsed.requests)),
        answer(std::move(parsed.reply)),
        model(for_model),
        id(std::move(unique)),
        created(when) {
    if (answer.reply().stream) stream.emplace(answer.reply(), model->tokenizer, id, created);
  }

  std::vector<Request> requests;
  OpenAiAnswer answer;
  const OpenAiModel* model;
  std::string id;
  int64_t created;
  std::optional<OpenAiStream> stream;
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
  LATTE_CHECK(!done(), "an event after the end of request {}", state_->id);
  OpenAiAnswer& answer = state_->answer;
  const OpenAiParts parts = answer.Add(event, i);
  if (!state_->stream) return;
  if (answer.error()) {
    *sse += OpenAiErrorEvents(*answer.error());
    return;
  }
  state_->stream->Add(i, event, parts, answer, sse);
  if (answer.done()) state_->stream->Finish(answer.usage(), sse);
}

bool OpenAiRunning::done() const { return state_->answer.error() || state_->answer.done(); }
const std::optional<Error>& OpenAiRunning::error() const { return state_->answer.error(); }
const OpenAiReply& OpenAiRunning::reply() const { return state_->answer.reply(); }
OpenAiUsage OpenAiRunning::usage() const { return state_->answer.usage(); }

JsonOut OpenAiRunning::Body() const {
  return state_->answer.Body(state_->model->tokenizer, state_->id, state_->created);
}

std::string OpenAiErrorEvents(const Error& error) {
  return "data: " + Dump(OpenAiError(error)) + "\n\ndata: [DONE]\n\n";
}

}  // namespace latte
