// Log, metrics and views of one server. On the I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "latte/engine.h"

#include "src/http/server.h"
#include "src/openai/request.h"
#include "src/serve/front.h"
#include "src/serve/generations.h"
#include "src/serve/observe/log.h"
#include "src/serve/observe/metrics.h"
#include "src/serve/observe/request_id.h"
#include "src/serve/observe/request_views.h"
#include "src/serve/options.h"

namespace latte {

class Observer final : public GenerationObserver {
 public:
  // Errors: of ParseLogLevel.
  [[nodiscard]] static Result<std::unique_ptr<Observer>> Create(const ServeOptions& options,
                                                                const std::string& model_name,
                                                                std::string_view version);

  void Arrived(const std::string& id, const HttpRequest& request, OpenAiEndpoint endpoint);
  void Parsed(const std::string& id, const OpenAiRequest& request) override;
  void Refused(const std::string& id, const Error& error) override;
  void Event(const std::string& id, const TokenEvent& event) override;
  void Ended(const std::string& id, const OpenAiUsage& usage,
             const std::optional<Error>& error) override;

  // A line of the access log.
  void Answered(const AnsweredRequest& answered);

  // Writes the line of statistics when it is time and something happens. Call it once per second.
  void Tick(const EngineStats& stats);

  Log& log() { return log_; }
  Metrics& metrics() { return metrics_; }
  RequestIds& ids() { return ids_; }
  std::string RequestsJson() const { return views_.Json(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    std::optional<Clock::time_point> first_token;
    Clock::time_point last_token;
    double queue_seconds = 0;
    double prefill_seconds = 0;
    int64_t cached_tokens = 0;
    int64_t generated_tokens = 0;
  };

  Observer(const ServeOptions& options, LogLevel level, const std::string& model_name,
           std::string_view version)
      : options_(options),
        log_({.level = level, .json = options.log_format == "json"}),
        metrics_(model_name, version) {}
  void CountToken(RequestView& view, Choice& choice, const TokenEvent& event);

  const ServeOptions& options_;
  Log log_;
  Metrics metrics_;
  RequestIds ids_;
  RequestViews views_;
  // By (Request::user_data, choice) of the engine's requests that run.
  std::map<std::pair<uint64_t, int>, Choice> choices_;
  std::unordered_map<std::string, std::vector<std::pair<uint64_t, int>>> of_request_;
  EngineStats before_;
  Clock::time_point last_line_ = Clock::now();
};

}  // namespace latte
