#include "src/serve/observe/observer.h"

#include <algorithm>
#include <utility>

#include "src/serve/observe/stats_line.h"

namespace latte {
namespace {

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Result<std::unique_ptr<Observer>> Observer::Create(const ServeOptions& options,
                                                   const std::string& model_name,
                                                   std::string_view version) {
  LATTE_ASSIGN_OR_RETURN(const LogLevel level, ParseLogLevel(options.log_level));
  return std::unique_ptr<Observer>(new Observer(options, level, model_name, version));
}

void Observer::Arrived(const std::string& id, const HttpRequest& request, OpenAiEndpoint endpoint) {
  RequestView& view = views_.At(id);
  view.id = id;
  view.endpoint = Url(endpoint);
  view.peer = request.peer;
}

void Observer::Parsed(const std::string& id, const OpenAiRequest& request) {
  RequestView& view = views_.At(id);
  view.phase = RequestPhase::kWaiting;
  view.stream = request.reply.stream;
  view.n = request.reply.n;
  view.prompts = static_cast<int64_t>(request.requests.size());
  for (const Request& one : request.requests)
    view.prompt_tokens += static_cast<int64_t>(one.tokens.size());
  const Request& first = request.requests.front();
  view.priority = first.priority;
  metrics_.RequestParsed(request.reply.n, first.stop.max_tokens);
  for (const std::string& field : request.ignored) metrics_.Ignored(field);
}

void Observer::Refused(const std::string& id, const Error& error) {
  views_.End(id, std::string(CodeName(error.code)));
}

void Observer::CountToken(RequestView& view, Choice& choice, const TokenEvent& event) {
  const Clock::time_point now = Clock::now();
  if (!choice.first_token) {
    choice.first_token = now;
    choice.queue_seconds = event.queue_seconds;
    choice.prefill_seconds = event.prefill_seconds;
    choice.cached_tokens = event.cached_tokens;
    if (event.choice == 0) view.cached_tokens += event.cached_tokens;
    if (!view.first_token) view.first_token = now;
    view.phase = RequestPhase::kRunning;
    metrics_.FirstToken(Seconds(now - view.arrived));
  } else {
    metrics_.TokenAfter(Seconds(now - choice.last_token));
  }
  view.generated_tokens += event.generated_tokens - choice.generated_tokens;
  choice.generated_tokens = event.generated_tokens;
  choice.last_token = now;
}

void Observer::Event(const std::string& id, const TokenEvent& event) {
  RequestView* const view = views_.Find(id);
  if (view == nullptr) return;
  const std::pair key(event.user_data, event.choice);
  const auto [found, is_new] = choices_.try_emplace(key);
  if (is_new) of_request_[id].push_back(key);
  Choice& choice = found->second;
  if (event.token) CountToken(*view, choice, event);
  if (!event.finish) return;
  const Clock::time_point now = Clock::now();
  metrics_.Finished(
      {.reason = Name(*event.finish),
       .prompt_tokens = event.prompt_tokens,
       .generated_tokens = event.generated_tokens,
       .queue_seconds = choice.queue_seconds,
       .prefill_seconds = choice.prefill_seconds,
       .decode_seconds = choice.first_token ? Seconds(choice.last_token - *choice.first_token) : 0,
       .total_seconds = Seconds(now - view->arrived)});
}

void Observer::Ended(const std::string& id, const OpenAiUsage& usage,
                     const std::optional<Error>& error) {
  if (const auto keys = of_request_.find(id); keys != of_request_.end()) {
    for (const auto& key : keys->second) choices_.erase(key);
    of_request_.erase(keys);
  }
  const RequestView* const view = views_.Find(id);
  if (view == nullptr) return;
  const std::string outcome = error ? std::string(CodeName(error->code)) : "done";
  const Clock::time_point now = Clock::now();
  log_.Info("generation",
            {{"id", id},
             {"endpoint", view->endpoint},
             {"outcome", outcome},
             {"prompt_tokens", usage.prompt_tokens},
             {"cached_tokens", usage.cached_tokens},
             {"generated_tokens", usage.generated_tokens},
             {"ttft_s", view->first_token ? Seconds(*view->first_token - view->arrived) : 0.0},
             {"seconds", Seconds(now - view->arrived)}});
  views_.End(id, outcome);
}

void Observer::Answered(const AnsweredRequest& answered) {
  const auto& [status, seconds] = answered.outcome;
  metrics_.Responded(status, seconds);
  if (!options_.access_log) return;
  log_.Info("request", {{"id", answered.id},
                        {"client", answered.peer},
                        {"method", answered.method},
                        {"path", answered.path},
                        {"status", int64_t{status}},
                        {"seconds", seconds}});
}

void Observer::Tick(const EngineStats& stats) {
  const Clock::time_point now = Clock::now();
  const double seconds = Seconds(now - last_line_);
  if (options_.stats_interval == 0 || seconds < options_.stats_interval) return;
  if (IsBusy(before_, stats)) log_.Info(StatsLine(before_, stats, seconds));
  before_ = stats;
  last_line_ = now;
}

}  // namespace latte
