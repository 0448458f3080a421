#include "src/serve/observe/observer.h"

#include <algorithm>
#include <utility>

#include "src/api/common/neutral_fields.h"
#include "src/api/request.h"

namespace latte {
namespace {

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

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
  std::shared_ptr<void> listed(nullptr, [this, id](void*) {
    generations_.erase(id);
    views_.Forget(id);
  });
  const Clock::time_point now = Clock::now();
  views_.Began(id, Url(endpoint), client, now);
  Generation& g = generations_[id];
  g.arrived = now;
  g.endpoint = Url(endpoint);
  return listed;
}

void Observer::Parsed(const std::string& id, const ApiRequest& request) {
  const Request& first = request.requests.front();
  views_.Parsed(id, {.model = request.reply.model,
                     .prompts = static_cast<int64_t>(request.requests.size()),
                     .n = request.reply.n,
                     .stream = request.reply.stream,
                     .priority = first.priority});
  for (const std::string& field : request.ignored) metrics_.Ignored(field);
  const auto found = generations_.find(id);
  if (found == generations_.end()) return;
  found->second.n = request.reply.n;
  found->second.max_tokens = first.stop.max_tokens;
}

void Observer::Refused(const std::string& id, const Error& error) {
  generations_.erase(id);
  metrics_.Refused(HttpStatus(error.code));
  views_.Ended(id, CodeName(error.code), Clock::now());
}

void Observer::CountToken(Generation& g, Choice& choice, Clock::time_point now) {
  if (choice.first_token) {
    metrics_.TokenLatency(Seconds(now - choice.last_token));
  } else {
    choice.first_token = now;
    metrics_.FirstToken(Seconds(now - g.arrived));
    if (!g.first_token) g.first_token = now;
  }
  choice.last_token = now;
}

void Observer::Event(const std::string& id, const TokenEvent& event) {
  const auto found = generations_.find(id);
  if (found == generations_.end()) return;
  const Clock::time_point now = Clock::now();
  views_.Event(id, event, now);
  Choice& choice = found->second.choices[{event.user_data, event.choice}];
  if (event.token) {
    CountToken(found->second, choice, now);
    choice.figures.queue_seconds = event.queue_seconds;
    choice.figures.prefill_seconds = event.prefill_seconds;
  }
  choice.figures.prompt_tokens = event.prompt_tokens;
  choice.figures.cached_tokens = event.cached_tokens;
  choice.figures.generated_tokens = event.generated_tokens;
  if (event.finish) FinishChoice(found->second, choice, *event.finish);
}

void Observer::FinishChoice(const Generation& g, Choice& choice, FinishReason reason) {
  choice.finished = true;
  FinishedRequest& figures = choice.figures;
  figures.reason = reason;
  figures.max_tokens = g.max_tokens;
  figures.seconds = Seconds(Clock::now() - g.arrived);
  if (choice.first_token) figures.decode_seconds = Seconds(choice.last_token - *choice.first_token);
  metrics_.RequestDone(figures);
}

void Observer::FinishAll(Generation& g, const std::optional<Error>& error) {
  const FinishReason reason =
      error && error->code == Code::kCancelled ? FinishReason::kCancelled : FinishReason::kError;
  std::map<uint64_t, int64_t> longest;  // by prompt
  for (auto& [key, choice] : g.choices) {
    // No more events come of answers that end early.
    if (!choice.finished) FinishChoice(g, choice, reason);
    int64_t& tokens = longest[key.first];
    tokens = std::max(tokens, choice.figures.generated_tokens);
  }
  for (const auto& [prompt, tokens] : longest) metrics_.PromptDone(g.n, tokens);
  if (error && g.choices.empty()) metrics_.Refused(HttpStatus(error->code));
}

void Observer::Ended(const std::string& id, const ApiUsage& usage,
                     const std::optional<Error>& error) {
  auto taken = generations_.extract(id);
  if (taken.empty()) return;
  Generation& g = taken.mapped();
  const Clock::time_point now = Clock::now();
  const std::string_view result = error ? CodeName(error->code) : "done";
  FinishAll(g, error);
  log_.Info("generation", {{"id", id},
                           {"endpoint", g.endpoint},
                           {"result", result},
                           {"prompt_tokens", usage.prompt_tokens},
                           {"cached_tokens", usage.cached_tokens},
                           {"generated_tokens", usage.generated_tokens},
                           {"ttft_s", g.first_token ? Seconds(*g.first_token - g.arrived) : 0.0},
                           {"seconds", Seconds(now - g.arrived)}});
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
  const LogLevel level = answered.by_page && status < 400 ? LogLevel::kDebug : LogLevel::kInfo;
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
