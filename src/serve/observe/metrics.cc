#include "src/serve/observe/metrics.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

namespace latte {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;
using Labels = prometheus::Labels;

const Buckets kFirstToken = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,   0.75,
                             1.0,   2.5,   5.0,  7.5,  10,   20,   40,   80,  160,  640.0, 2560};
const Buckets kBetweenTokens = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                0.75, 1.0,   2.5,  5.0,   7.5, 10,   20,  40,  80};
const Buckets kLatency = {0.3, 0.5, 0.8, 1.0,  1.5,  2.0,  2.5,  5.0,   10.0,  15.0, 20.0,
                          30,  40,  50,  60.0, 120., 240., 480., 960.0, 1920., 7680};
const Buckets kCounts = {1, 2, 5, 10, 20};
const Buckets kTokens = {1,    2,    5,    10,    20,    50,    100,    200,   500,
                         1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};
const Buckets kStepTokens = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double OpenFiles() {
  std::error_code error;
  const auto files = std::filesystem::directory_iterator("/proc/self/fd", error);
  return error ? 0 : static_cast<double>(std::distance(begin(files), end(files)));
}

double ProcessorSeconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

}  // namespace

struct Metrics::State {
  explicit State(const std::string& model_name)
      : labels{{"model_name", model_name}, {"engine", "0"}} {}

  Gauge& AddGauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
  }
  Counter& AddCounter(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
  }
  Family<Counter>& AddFamily(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Histogram& AddHistogram(const std::string& name, const std::string& help,
                          const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels,
                                                                                     buckets);
  }
  void Count(Family<Counter>& family, const std::string& name, const std::string& value) {
    Labels all = labels;
    all[name] = value;
    family.Add(all).Increment();
  }
  // Totals of the engine grow; a counter takes what is new.
  static void Raise(Counter& counter, double total) {
    if (total > counter.Value()) counter.Increment(total - counter.Value());
  }

  Labels labels;
  prometheus::Registry registry;
  // vLLM's
  Gauge& running = AddGauge("vllm:num_requests_running", "Sequences that are computed.");
  Gauge& waiting = AddGauge("vllm:num_requests_waiting", "Sequences that wait.");
  Gauge& cache = AddGauge("vllm:kv_cache_usage_perc", "Share of cache pages in use, 0 to 1.");
  Counter& prefix_queries =
      AddCounter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.");
  Counter& prefix_hits =
      AddCounter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.");
  Counter& preemptions = AddCounter("vllm:num_preemptions_total", "Sequences that were preempted.");
  Counter& prompt_tokens = AddCounter("vllm:prompt_tokens_total", "Prompt tokens of requests.");
  Counter& generated = AddCounter("vllm:generation_tokens_total", "Generated tokens.");
  Family<Counter>& success =
      AddFamily("vllm:request_success_total", "Answers that ended, by reason.");
  Histogram& first_token =
      AddHistogram("vllm:time_to_first_token_seconds",
                   "From a request's arrival to its first token.", kFirstToken);
  Histogram& between = AddHistogram("vllm:inter_token_latency_seconds",
                                    "Between two tokens of an answer.", kBetweenTokens);
  Histogram& per_token =
      AddHistogram("vllm:request_time_per_output_token_seconds",
                   "Mean time per token of an answer after its first.", kBetweenTokens);
  Histogram& total = AddHistogram("vllm:e2e_request_latency_seconds",
                                  "From a request's arrival to its end.", kLatency);
  Histogram& queue =
      AddHistogram("vllm:request_queue_time_seconds", "In the engine's queue.", kLatency);
  Histogram& prefill = AddHistogram("vllm:request_prefill_time_seconds",
                                    "From the first step to the first token.", kLatency);
  Histogram& decode = AddHistogram("vllm:request_decode_time_seconds",
                                   "From the first token to the last.", kLatency);
  Histogram& inference = AddHistogram("vllm:request_inference_time_seconds",
                                      "From the first step to the last token.", kLatency);
  Histogram& request_prompt =
      AddHistogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", kTokens);
  Histogram& request_generated =
      AddHistogram("vllm:request_generation_tokens", "Generated tokens of an answer.", kTokens);
  Histogram& params_n = AddHistogram("vllm:request_params_n", "The field n.", kCounts);
  Histogram& params_max =
      AddHistogram("vllm:request_params_max_tokens", "The field max_tokens.", kTokens);
  Histogram& step_tokens =
      AddHistogram("vllm:iteration_tokens_total",
                   "New tokens of a step: means over the steps between two readings.", kStepTokens);
  // Our own
  Family<Counter>& responses =
      AddFamily("latte:http_responses_total", "Answered requests, by status.");
  Histogram& response_seconds = AddHistogram(
      "latte:http_response_seconds", "From a request's arrival to its answer's end.", kLatency);
  Family<Counter>& refused =
      AddFamily("latte:http_refused_total", "Requests refused by head, access or path, by status.");
  Family<Counter>& ignored =
      AddFamily("latte:ignored_fields_total", "Fields of requests that have no effect, by name.");
  Counter& cancelled = AddCounter("latte:answers_cancelled_total", "Answers whose client left.");
  Counter& failed = AddCounter("latte:answers_failed_total", "Answers that ended with an error.");
  Counter& disk_tokens =
      AddCounter("latte:prefix_disk_tokens_total", "Prompt tokens read from --cache-dir.");
  Counter& computed = AddCounter("latte:computed_tokens_total", "New tokens of all steps.");
  Counter& steps = AddCounter("latte:steps_total", "Steps of the engine.");
  Counter& step_seconds = AddCounter("latte:step_seconds_total", "Time spent in steps.");
  Gauge& step_age = AddGauge("latte:step_age_seconds", "Duration of the running step; 0: none.");
  Gauge& cached_pages =
      AddGauge("latte:cache_pages_prefix", "Cache pages kept for prefixes alone.");
  Gauge& total_pages = AddGauge("latte:cache_pages", "Cache pages.");
  Gauge& connections = AddGauge("latte:connections", "Open connections.");
  Gauge& unsent = AddGauge("latte:unsent_bytes", "Bytes of answers that wait for their readers.");
  Counter& slow =
      AddCounter("latte:slow_readers_dropped_total", "Connections dropped as too slow.");
  Counter& full =
      AddCounter("latte:connections_refused_total", "Connections beyond --max-connections.");
  Counter& log_dropped = AddCounter("latte:log_lines_dropped_total", "Log lines dropped.");
  Gauge& ready = AddGauge("latte:ready", "1: requests are accepted.");
  Family<Gauge>& cache_config = prometheus::BuildGauge()
                                    .Name("vllm:cache_config_info")
                                    .Help("The cache, as labels.")
                                    .Register(registry);
  Family<Gauge>& build = prometheus::BuildGauge()
                             .Name("latte:build_info")
                             .Help("The version, as a label.")
                             .Register(registry);
  // The process's, with the names of Prometheus' own clients
  Gauge& resident = AddGauge("process_resident_memory_bytes", "Resident memory of the process.");
  Counter& processor = AddCounter("process_cpu_seconds_total", "Processor time of the process.");
  Gauge& files = AddGauge("process_open_fds", "Open file descriptors.");
  Gauge& started = AddGauge("process_start_time_seconds", "Start, in seconds since 1970.");
  EngineStats before;  // of the reading before
};

Metrics::Metrics(const std::string& model_name, std::string_view version)
    : state_(std::make_unique<State>(model_name)) {
  Labels labels = state_->labels;
  labels["version"] = std::string(version);
  state_->build.Add(labels).Set(1);
  state_->started.Set(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
}

Metrics::~Metrics() = default;

void Metrics::RequestParsed(int n, int64_t max_tokens) {
  state_->params_n.Observe(n);
  state_->params_max.Observe(static_cast<double>(max_tokens));
}

void Metrics::FirstToken(double seconds) { state_->first_token.Observe(seconds); }
void Metrics::TokenAfter(double seconds) { state_->between.Observe(seconds); }

void Metrics::Finished(const FinishedAnswer& answer) {
  State& s = *state_;
  s.Count(s.success, "finished_reason", std::string(answer.reason));
  s.total.Observe(answer.total_seconds);
  s.queue.Observe(answer.queue_seconds);
  s.prefill.Observe(answer.prefill_seconds);
  s.decode.Observe(answer.decode_seconds);
  s.inference.Observe(answer.prefill_seconds + answer.decode_seconds);
  s.request_prompt.Observe(static_cast<double>(answer.prompt_tokens));
  s.request_generated.Observe(static_cast<double>(answer.generated_tokens));
  if (answer.generated_tokens > 1)
    s.per_token.Observe(answer.decode_seconds / static_cast<double>(answer.generated_tokens - 1));
}

void Metrics::Responded(int status, double seconds) {
  state_->Count(state_->responses, "status", std::to_string(status));
  state_->response_seconds.Observe(seconds);
}

void Metrics::Refused(int status) {
  state_->Count(state_->refused, "status", std::to_string(status));
}

void Metrics::Ignored(std::string_view field) {
  state_->Count(state_->ignored, "field", std::string(field));
}

void Metrics::CacheConfig(const EngineOptions& options) {
  Labels labels = state_->labels;
  labels["block_size"] = std::to_string(options.page_tokens);
  labels["cache_dtype"] = options.cache_dtype.empty() ? options.dtype : options.cache_dtype;
  labels["cache_bytes"] = std::to_string(options.cache_bytes);
  labels["enable_prefix_caching"] = options.prefix_cache ? "True" : "False";
  state_->cache_config.Add(labels).Set(1);
}

std::string Metrics::Text(const ServerSnapshot& now) {
  State& s = *state_;
  const EngineStats& e = now.engine;
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  s.running.Set(number(e.running));
  s.waiting.Set(number(e.waiting));
  s.cache.Set(e.pages_total > 0 ? number(e.pages_used) / number(e.pages_total) : 0);
  s.cached_pages.Set(number(e.pages_cached));
  s.total_pages.Set(number(e.pages_total));
  State::Raise(s.prefix_queries, number(e.prompt_tokens));
  State::Raise(s.prefix_hits, number(e.cached_tokens));
  State::Raise(s.disk_tokens, number(e.disk_tokens));
  State::Raise(s.preemptions, number(e.preemptions));
  State::Raise(s.prompt_tokens, number(e.prompt_tokens));
  State::Raise(s.generated, number(e.generated_tokens));
  State::Raise(s.computed, number(e.computed_tokens));
  State::Raise(s.cancelled, number(e.requests_cancelled));
  State::Raise(s.failed, number(e.requests_failed));
  State::Raise(s.steps, number(e.steps));
  State::Raise(s.step_seconds, e.step_seconds);
  const int64_t steps = e.steps - s.before.steps;
  if (steps > 0)
    s.step_tokens.Observe(number(e.computed_tokens - s.before.computed_tokens) / number(steps));
  s.before = e;
  s.step_age.Set(now.step_age_seconds);
  s.connections.Set(number(now.connections));
  s.unsent.Set(number(now.unsent_bytes));
  s.ready.Set(now.ready ? 1 : 0);
  State::Raise(s.slow, number(now.dropped_slow));
  State::Raise(s.full, number(now.refused_connections));
  State::Raise(s.log_dropped, number(now.dropped_log_lines));
  s.resident.Set(ResidentBytes());
  s.files.Set(OpenFiles());
  State::Raise(s.processor, ProcessorSeconds());
  return prometheus::TextSerializer().Serialize(s.registry.Collect());
}

}  // namespace latte
