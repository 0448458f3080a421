#include "src/serve/observe/observer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/api/request.h"
#include "src/base/timer.h"

namespace latte {
Observer::Observer(const ServeOptions& options, Log log, const std::string& model_name,
                   std::string_view version)
    : options_(options),
      log_(std::move(log)),
      metrics_({.model_name = model_name,
                .version = std::string(version),
                .ignored_names = IgnoredFieldNames()}) {}

Result<std::unique_ptr<Observer>> Observer::Create(const ServeOptions& options,
                                                   const std::string& model_name,
                                                   std::string_view version) {
  LATTE_ASSIGN_OR_RETURN(Log log,
                         Log::Create({.level = options.log_level, .format = options.log_format}));
  return std::unique_ptr<Observer>(new Observer(options, std::move(log), model_name, version));
}

std::shared_ptr<void> Observer::Began(const std::string& id, ApiEndpoint endpoint,
                                      const std::string& client) {
  // Made first: if memory runs out below, nothing stays listed.
  std::shared_ptr<void> listed(nullptr, [this, id](void*) { views_.Forget(id); });
  views_.Began(id, Url(endpoint), client, Clock::now());
  return listed;
}

void Observer::Parsed(const std::string& id, const ApiRequest& request) {
  const Request& first = request.requests.front();
  views_.Parsed(id, {.model = request.reply.model,
                     .prompts = static_cast<int64_t>(request.requests.size()),
                     .n = request.reply.n,
                     .stream = request.reply.stream,
                     .priority = first.priority,
                     .max_tokens = first.stop.max_tokens});
  for (const std::string& field : request.ignored) metrics_.Ignored(field);
}

void Observer::Refused(const std::string& id, const Error& error) {
  metrics_.Refused(HttpStatus(error.code));
  views_.Ended(id, CodeName(error.code), Clock::now());
}

void Observer::CountToken(const ServedRequest& request, ServedRequest::Answer& answer,
                          Clock::time_point now) {
  if (answer.first_token) {
    metrics_.TokenLatency(Seconds(now - answer.last_token));
  } else {
    answer.first_token = now;
    metrics_.FirstToken(Seconds(now - request.began));
  }
  answer.last_token = now;
}

void Observer::Event(const std::string& id, const TokenEvent& event) {
  ServedRequest* const request = views_.Find(id);
  if (request == nullptr) return;
  const Clock::time_point now = Clock::now();
  views_.Event(id, event, now);
  ServedRequest::Answer& answer = request->answers[{event.user_data, event.choice}];
  FinishedRequest& figures = answer.figures;
  if (event.token) {
    CountToken(*request, answer, now);
    figures.queue_seconds = event.queue_seconds;
    figures.prefill_seconds = event.prefill_seconds;
  }
  figures.prompt_tokens = event.prompt_tokens;
  figures.cached_tokens = event.cached_tokens;
  figures.generated_tokens = event.generated_tokens;
  if (event.finish) Finish(*request, answer, *event.finish);
}

void Observer::Finish(const ServedRequest& request, ServedRequest::Answer& answer,
                      FinishReason reason) {
  answer.finished = true;
  FinishedRequest& figures = answer.figures;
  figures.reason = reason;
  figures.max_tokens = request.summary.max_tokens;
  figures.seconds = Seconds(Clock::now() - request.began);
  if (answer.first_token) figures.decode_seconds = Seconds(answer.last_token - *answer.first_token);
  metrics_.RequestDone(figures);
}

void Observer::FinishAll(ServedRequest& request, const std::optional<Error>& error) {
  const FinishReason reason =
      error && error->code == Code::kCancelled ? FinishReason::kCancelled : FinishReason::kError;
  std::map<uint64_t, int64_t> longest;  // by prompt
  for (auto& [key, answer] : request.answers) {
    // No more events come of answers that end early.
    if (!answer.finished) Finish(request, answer, reason);
    int64_t& tokens = longest[key.first];
    tokens = std::max(tokens, answer.figures.generated_tokens);
  }
  for (const auto& [prompt, tokens] : longest) metrics_.PromptDone(request.summary.n, tokens);
  if (error && request.answers.empty()) metrics_.Refused(HttpStatus(error->code));
}

void Observer::Ended(const std::string& id, const ApiUsage& usage,
                     const std::optional<Error>& error) {
  ServedRequest* const request = views_.Find(id);
  if (request == nullptr) return;
  const Clock::time_point now = Clock::now();
  const std::string_view result = error ? CodeName(error->code) : "done";
  FinishAll(*request, error);
  const auto& first_token = request->first_token;
  log_.Info("generation", {{"id", id},
                           {"endpoint", request->endpoint},
                           {"result", result},
                           {"prompt_tokens", usage.prompt_tokens},
                           {"cached_tokens", usage.cached_tokens},
                           {"generated_tokens", usage.generated_tokens},
                           {"ttft_s", first_token ? Seconds(*first_token - request->began) : 0.0},
                           {"seconds", Seconds(now - request->began)}});
  views_.Ended(id, result, now);
}

void Observer::RefusedHead(const HttpRequest* head, int status) {
  metrics_.Refused(status);
  if (!options_.access_log || head == nullptr) return;
  log_.Info(
      "refused",
      {{"client", head->peer}, {"method", head->method}, {"path", head->path}, {"status", status}});
}

void Observer::Answered(const AnsweredRequest& answered) {
  const auto& [status, seconds] = answered.outcome;
  metrics_.Answered(status, seconds);
  if (!options_.access_log) return;
  // An open page asks every two seconds.
  const LogLevel level = answered.by_web_page && status < 400 ? LogLevel::kDebug : LogLevel::kInfo;
  const LogField fields[] = {{"id", *answered.id},        {"client", answered.peer},
                             {"method", answered.method}, {"path", answered.path},
                             {"status", status},          {"seconds", seconds}};
  log_.Write(level, "request", fields);
}

void Observer::Tick(const EngineStats& stats, int64_t connections) {
  const Clock::time_point now = Clock::now();
  if (options_.stats_interval == 0 || now < next_line_) return;
  next_line_ = now + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options_.stats_interval));
  const StatsSnapshot snapshot{now, stats, connections};
  if (!stats_line_) {
    stats_line_.emplace(snapshot);
  } else if (const auto figures = stats_line_->Next(snapshot)) {
    log_.Write(LogLevel::kInfo, "stats", StatsFields(*figures));
  }
}

}  // namespace latte
