// Log, metrics and views of one server, made from the events of its requests. On the I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "latte/engine.h"

#include "src/api/common/request.h"
#include "src/http/server.h"
#include "src/serve/endpoints/endpoints.h"
#include "src/serve/generations.h"
#include "src/serve/observe/log.h"
#include "src/serve/observe/metrics.h"
#include "src/serve/observe/request_id.h"
#include "src/serve/observe/request_views.h"
#include "src/serve/observe/stats_line.h"
#include "src/serve/options.h"

namespace latte {

class Observer final : public GenerationObserver {
 public:
  // `options` must outlive it. Errors: of Log::Create.
  [[nodiscard]] static Result<std::unique_ptr<Observer>> Create(const ServeOptions& options,
                                                                const std::string& model_name,
                                                                std::string_view version);

  [[nodiscard]] std::shared_ptr<void> Began(const std::string& id, ApiEndpoint endpoint,
                                            const std::string& client) override;
  void Parsed(const std::string& id, const ApiRequest& request) override;
  void Refused(const std::string& id, const Error& error) override;
  void Event(const std::string& id, const TokenEvent& event) override;
  void Ended(const std::string& id, const ApiUsage& usage,
             const std::optional<Error>& error) override;

  // A request was refused before it had an id; `head` is null if it is not even proper HTTP.
  void RefusedHead(const HttpRequest* head, int status);

  // A line of the access log.
  void Answered(const AnsweredRequest& answered);

  // Writes the line of statistics when it is time and something happens. Call it once per second.
  void Tick(const EngineStats& stats, int64_t connections);

  Log& log() { return log_; }
  Metrics& metrics() { return metrics_; }
  RequestIds& ids() { return ids_; }
  std::string RequestsJson() const { return views_.Json(Clock::now()); }
  // The requests that are listed.
  size_t views() const { return views_.size(); }

 private:
  using Clock = std::chrono::steady_clock;

  Observer(const ServeOptions& options, Log log, const std::string& model_name,
           std::string_view version);
  void CountToken(const ServedRequest& request, ServedRequest::Answer& answer,
                  Clock::time_point now);
  void Finish(const ServedRequest& request, ServedRequest::Answer& answer, FinishReason reason);
  void FinishAll(ServedRequest& request, const std::optional<Error>& error);

  const ServeOptions& options_;
  Log log_;
  Metrics metrics_;
  RequestIds ids_;
  RequestViews views_;
  std::optional<StatsLine> stats_line_;  // once the model is loaded
  Clock::time_point next_line_;
};

}  // namespace latte
