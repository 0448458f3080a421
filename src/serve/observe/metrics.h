// The metrics of the server in Prometheus' text format. Names, units and buckets are vLLM's where
// the meaning is the same; names of our own begin with "latte:". docs/metrics.md lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "latte/engine.h"

namespace latte {

// One answer that has ended.
struct FinishedAnswer {
  std::string_view reason;  // "stop", "length", "cancelled", "error"
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  double queue_seconds = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double total_seconds = 0;  // since the request arrived
};

// The state of the server at one moment.
struct ServerSnapshot {
  EngineStats engine;
  int64_t connections = 0;
  int64_t unsent_bytes = 0;
  int64_t dropped_slow = 0;         // since the start
  int64_t refused_connections = 0;  // since the start
  int64_t dropped_log_lines = 0;    // since the start
  double step_age_seconds = 0;      // 0: no step runs
  bool ready = false;
};

// On one thread.
class Metrics {
 public:
  // `max_model_len` bounds the buckets of token counts.
  Metrics(const std::string& model_name, std::string_view version);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void RequestParsed(int n, int64_t max_tokens);
  void FirstToken(double seconds);  // since the request arrived
  void TokenAfter(double seconds);  // since the answer's token before
  void Finished(const FinishedAnswer& answer);
  void Responded(int status, double seconds);
  void Refused(int status);              // before it became a request
  void Ignored(std::string_view field);  // of the API; a name that Latte knows

  void CacheConfig(const EngineOptions& options);
  // Text of all metrics.
  std::string Text(const ServerSnapshot& now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace latte
