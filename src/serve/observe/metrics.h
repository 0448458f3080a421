// The metrics of a server, in the text format of Prometheus. Names, units and buckets are vLLM's
// where the meaning is the same (prefix "vllm:"); all others have the prefix "latte:", or
// "process_" as every Prometheus client has. docs/metrics.md lists them.
//
// On one thread only. No label has a value that a client chose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/engine.h"
#include "latte/request.h"

#include "src/http/server.h"

namespace latte {

struct MetricsOptions {
  std::string model_name;                  // of the label model_name
  std::string version;                     // of Latte
  std::vector<std::string> ignored_names;  // the fields that Ignored may name
};

// One answer that has ended: what vLLM counts as a request. Times are in seconds.
struct FinishedRequest {
  FinishReason reason = FinishReason::kStop;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of them, found in the prefix cache
  int64_t generated_tokens = 0;
  int64_t max_tokens = 0;
  double seconds = 0;                     // from the arrival to the last token
  std::optional<double> queue_seconds;    // in the engine's queue
  std::optional<double> prefill_seconds;  // from there to the first token
  std::optional<double> decode_seconds;   // from the first token to the last
};

// Entries in the server's lists. A request leaves none behind.
struct RequestRecords {
  size_t request_ids = 0;
  size_t views = 0;        // of GET /requests
  size_t figures = 0;      // for these metrics: the same list
  size_t generations = 0;  // from their arrival to their end
  size_t prompts = 0;      // of them, in the engine
  size_t parsing = 0;      // work that waits for a worker
};

// The state and the counters of a server at one moment.
struct ServerSnapshot {
  std::optional<EngineStats> engine;  // none: the model is not loaded
  HttpServerStats http;
  bool ready = false;       // requests are accepted
  double step_seconds = 0;  // how long the running step has taken; 0: none runs
  int64_t restarts = 0;     // of the engine
  int64_t log_dropped = 0;  // lines, since the start
  RequestRecords records;
};

class Metrics {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The model is loaded. `options` are the engine's, resolved. Call it once, before RequestDone.
  void SetEngine(const EngineOptions& options, int64_t pages);

  // Seconds from a request's arrival to the first token of one answer.
  void FirstToken(double seconds);
  // Seconds between two tokens of one answer. Costs some nanoseconds.
  void TokenLatency(double seconds);
  void RequestDone(const FinishedRequest& request);
  // All answers to one prompt have ended: `n` of them, the longest with so many tokens.
  void PromptDone(int n, int64_t longest_answer);

  // A request was answered with an error before the engine took it.
  void Refused(int http_status);
  // A request had a field that has no effect.
  void Ignored(std::string_view name);
  // A request over HTTP was answered. `seconds`: from its arrival to the end of the answer.
  void Answered(int http_status, double seconds);

  // Counters go up to what `state` says, never down. Distributions over steps are exact if this is
  // called after every step; else the steps since the last call count with their mean.
  void Observe(const ServerSnapshot& state);

  // All metrics, with what the system says of this process.
  std::string Text();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace latte
