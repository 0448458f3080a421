#include "src/serve/observe/metrics.h"

#include <algorithm>
#include <array>
#include <functional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "src/serve/observe/buckets.h"
#include "src/serve/observe/meters.h"
#include "src/serve/observe/process_stats.h"
#include "src/serve/observe/records/request_gauges.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

using prometheus::Labels;

std::string ValidUtf8(std::string_view text) {
  std::string out;
  AppendValidUtf8(text, &out);
  return out;
}

std::string_view ReasonLabel(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "abort";
    case FinishReason::kError:
      break;
  }
  return "error";
}
constexpr auto kReasons = std::to_array<FinishReason>(
    {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled, FinishReason::kError});

constexpr std::string_view kOther = "other";
constexpr auto kRefusals = std::to_array<std::pair<int, std::string_view>>({
    {400, "invalid_request"},
    {401, "unauthorized"},
    {403, "forbidden"},
    {404, "not_found"},
    {405, "method_not_allowed"},
    {408, "timeout"},
    {413, "body_too_large"},
    {415, "media_type"},
    {422, "corrupt"},
    {429, "overloaded"},
    {431, "head_too_large"},
    {499, "client_left"},
    {500, "internal"},
    {503, "unavailable"},
    {0, kOther},
});
std::string_view RefusalLabel(int http_status) {
  for (const auto& [status, label] : kRefusals)
    if (status == http_status) return label;
  return kOther;
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(const MetricsOptions& options)
      // vLLM's labels; it numbers its engines, and here is one.
      : model{{"model_name", ValidUtf8(options.model_name)}, {"engine", "0"}} {
    Gauge("latte:build_info", "1; the label has the version.",
          {{"version", ValidUtf8(options.version)}})
        .Set(1);
    for (const FinishReason reason : kReasons)
      finished.emplace_back(CountModel("vllm:request_success_total",
                                       "Answers that ended, by reason: stop, length, abort, error.",
                                       {{"finished_reason", std::string(ReasonLabel(reason))}}));
    for (const auto& [status, label] : kRefusals)
      refused.emplace(label, Count("latte:requests_refused_total",
                                   "Requests answered with an error before the engine took them.",
                                   {{"reason", std::string(label)}}));
    std::vector<std::string> names = options.ignored_names;
    names.emplace_back(kOther);
    for (const std::string& name : names)
      ignored.emplace(name, Count("latte:ignored_fields_total",
                                  "Fields of requests that have no effect, by name.",
                                  {{"field", ValidUtf8(name)}}));
  }

  prometheus::Counter& Count(const char* name, const char* help, const Labels& labels = {}) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
  }
  prometheus::Gauge& Gauge(const char* name, const char* help, const Labels& labels = {}) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
  }
  Distribution& Distribute(const char* name, const char* help, const Bounds& bounds) {
    prometheus::Histogram& histogram =
        prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(model, bounds);
    return *distributions.emplace_back(std::make_unique<Distribution>(histogram, bounds));
  }
  prometheus::Counter& CountModel(const char* name, const char* help, Labels labels = {}) {
    labels.insert(model.begin(), model.end());
    return Count(name, help, labels);
  }
  prometheus::Gauge& GaugeModel(const char* name, const char* help) {
    return Gauge(name, help, model);
  }

  void ObserveEngine(const EngineStats& engine);
  void ReadProcess();

  prometheus::Registry registry;
  Labels model;
  std::vector<std::unique_ptr<Distribution>> distributions;

  // The engine's.
  prometheus::Gauge& running =
      GaugeModel("vllm:num_requests_running", "Answers that are being generated.");
  prometheus::Gauge& waiting =
      GaugeModel("vllm:num_requests_waiting",
                 "Requests that were not started, and answers that were preempted.");
  prometheus::Gauge& cache_usage =
      GaugeModel("vllm:kv_cache_usage_perc", "Share of the cache's pages in use, 0 to 1.");
  prometheus::Gauge& old_cache_usage = GaugeModel(
      "vllm:gpu_cache_usage_perc", "The same as vllm:kv_cache_usage_perc, under its older name.");
  Follower prompt_tokens{
      CountModel("vllm:prompt_tokens_total", "Tokens of the prompts that were begun.")};
  Follower cached_tokens{
      CountModel("vllm:prompt_tokens_cached_total",
                 "Of vllm:prompt_tokens_total, tokens found in the prefix cache.")};
  Follower generated_tokens{CountModel("vllm:generation_tokens_total", "Generated tokens.")};
  Follower queries{CountModel("vllm:prefix_cache_queries_total",
                              "Tokens that were looked up in the prefix cache.")};
  Follower hits{
      CountModel("vllm:prefix_cache_hits_total", "Tokens that were found in the prefix cache.")};
  Follower preemptions{
      CountModel("vllm:num_preemptions_total", "Answers that had to give back their pages.")};
  Follower drafted_tokens{CountModel("vllm:spec_decode_num_draft_tokens_total", "Drafted tokens.")};
  Follower accepted_tokens{
      CountModel("vllm:spec_decode_num_accepted_tokens_total",
                 "Of vllm:spec_decode_num_draft_tokens_total, tokens of answers.")};
  Distribution& iteration_tokens =
      Distribute("vllm:iteration_tokens_total", "Tokens that one step of the engine computed.",
                 IterationBounds());

  // Times of answers.
  Distribution& first_token =
      Distribute("vllm:time_to_first_token_seconds",
                 "Time from a request's arrival to its first token.", FirstTokenBounds());
  Distribution& token_latency = Distribute("vllm:inter_token_latency_seconds",
                                           "Time between two tokens of an answer.", TokenBounds());
  Distribution& mean_token =
      Distribute("vllm:request_time_per_output_token_seconds",
                 "Mean time per token of an answer after its first token.", TokenBounds());
  Distribution& request_time =
      Distribute("vllm:e2e_request_latency_seconds",
                 "Time from a request's arrival to the last token of an answer.", RequestBounds());
  Distribution& queue_time =
      Distribute("vllm:request_queue_time_seconds",
                 "Time from a request's arrival until the engine begins it.", RequestBounds());
  Distribution& prefill_time =
      Distribute("vllm:request_prefill_time_seconds", "Time from the begin to the first token.",
                 RequestBounds());
  Distribution& decode_time = Distribute("vllm:request_decode_time_seconds",
                                         "Time from the first token to the last.", RequestBounds());
  Distribution& inference_time =
      Distribute("vllm:request_inference_time_seconds", "Time from the begin to the last token.",
                 RequestBounds());
  Distribution& answers =
      Distribute("vllm:request_params_n", "Answers that a prompt asked for.", {1, 2, 5, 10, 20});
  std::vector<std::reference_wrapper<prometheus::Counter>> finished;  // by reason

  // Tokens of answers. The buckets depend on the model, which is loaded later.
  struct Lengths {
    Distribution& prompt;
    Distribution& generated;
    Distribution& longest;
    Distribution& most;
    Distribution& computed;
  };
  std::optional<Lengths> lengths;
  int64_t context = 0;  // tokens

  // Our own.
  Follower steps{Count("latte:engine_steps_total", "Steps of the engine.")};
  Follower restarts{Count("latte:engine_restarts_total",
                          "Times that the engine was started again after a failure.")};
  Follower step_seconds{Count("latte:engine_step_seconds_total", "Time spent in steps.")};
  Follower forward_seconds{
      Count("latte:engine_forward_seconds_total", "Of it, time spent in the model.")};
  Follower masks{
      Count("latte:masks_total", "Masks of tokens for answers that must match a grammar.")};
  Follower mask_seconds{
      Count("latte:mask_seconds_total", "Time spent on masks, next to the model.")};
  Follower mask_wait_seconds{Count("latte:mask_wait_seconds_total",
                                   "Of latte:engine_step_seconds_total, time waiting for masks.")};
  Distribution& step_time = Distribute("latte:step_seconds", "Duration of a step.", StepBounds());
  Follower computed_tokens{
      Count("latte:computed_tokens_total", "Tokens of prompts and answers that steps computed.")};
  Follower idle_tokens{
      Count("latte:idle_tokens_total",
            "Tokens that groups of ranks could have computed while the one with the most did.")};
  Follower disk_tokens{Count("latte:prefix_cache_disk_tokens_total",
                             "Of vllm:prefix_cache_hits_total, tokens read from --cache-dir.")};
  Follower cancelled{
      Count("latte:answers_cancelled_total",
            "Answers ended by their clients, who left, or by the end of the server.")};
  Follower failed{Count("latte:answers_failed_total", "Answers that ended with an error.")};
  prometheus::Gauge& pages = Gauge("latte:cache_pages", "Pages of the cache.");
  prometheus::Gauge& pages_used =
      Gauge("latte:cache_pages_used", "Pages that running sequences use.");
  prometheus::Gauge& pages_cached =
      Gauge("latte:cache_pages_cached", "Pages that are kept for prefixes alone.");
  prometheus::Gauge& page_bytes =
      Gauge("latte:cache_page_bytes", "Size of a page over all layers.");
  prometheus::Gauge& ready = Gauge("latte:ready", "1 while requests are accepted.");
  prometheus::Gauge& step_age =
      Gauge("latte:engine_step_age_seconds",
            "How long the running step has taken; 0 if none runs. The watchdog's figure.");
  prometheus::Gauge& connections = Gauge("latte:connections", "Open connections.");
  Follower accepted{Count("latte:connections_accepted_total", "Accepted connections.")};
  Follower refused_connections{
      Count("latte:connections_refused_total", "Connections closed because there were too many.")};
  Follower bad_requests{Count("latte:bad_requests_total",
                              "Requests that are not proper HTTP, too large or too slow.")};
  Follower dropped_slow{
      Count("latte:slow_readers_dropped_total", "Clients dropped because they did not read.")};
  RequestGauges requests{registry};
  Distribution& answer_time = Distribute("latte:http_response_seconds",
                                         "Time until the end of an HTTP answer.", RequestBounds());
  Follower log_dropped{
      Count("latte:log_lines_dropped_total", "Log lines dropped because the log was blocked.")};
  std::unordered_map<std::string_view, std::reference_wrapper<prometheus::Counter>> refused;
  std::unordered_map<std::string, std::reference_wrapper<prometheus::Counter>> ignored;
  std::unordered_map<int, std::reference_wrapper<prometheus::Counter>> answered;  // by status

  // The names that clients of Prometheus give these.
  Follower cpu_seconds{Count("process_cpu_seconds_total", "User and system CPU time.")};
  prometheus::Gauge& resident_bytes = Gauge("process_resident_memory_bytes", "Resident memory.");
  prometheus::Gauge& virtual_bytes = Gauge("process_virtual_memory_bytes", "Virtual memory.");
  prometheus::Gauge& open_files = Gauge("process_open_fds", "Open file descriptors.");
  prometheus::Gauge& max_files = Gauge("process_max_fds", "Limit of open file descriptors.");
  prometheus::Gauge& start_time =
      Gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.");
};

void Metrics::Impl::ObserveEngine(const EngineStats& engine) {
  running.Set(static_cast<double>(engine.running));
  waiting.Set(static_cast<double>(engine.waiting));
  const double usage = engine.pages_total == 0 ? 0
                                               : static_cast<double>(engine.pages_used) /
                                                     static_cast<double>(engine.pages_total);
  cache_usage.Set(usage);
  old_cache_usage.Set(usage);
  pages.Set(static_cast<double>(engine.pages_total));
  pages_used.Set(static_cast<double>(engine.pages_used));
  pages_cached.Set(static_cast<double>(engine.pages_cached));
  page_bytes.Set(static_cast<double>(engine.page_bytes));
  prompt_tokens.Reach(engine.prompt_tokens);
  cached_tokens.Reach(engine.cached_tokens);
  queries.Reach(engine.prompt_tokens);
  hits.Reach(engine.cached_tokens);
  disk_tokens.Reach(engine.disk_tokens);
  generated_tokens.Reach(engine.generated_tokens);
  preemptions.Reach(engine.preemptions);
  drafted_tokens.Reach(engine.drafted_tokens);
  accepted_tokens.Reach(engine.accepted_tokens);
  masks.Reach(engine.masks);
  mask_seconds.Reach(engine.mask_seconds);
  mask_wait_seconds.Reach(engine.mask_wait_seconds);
  idle_tokens.Reach(engine.idle_tokens);
  cancelled.Reach(engine.requests_cancelled);
  failed.Reach(engine.requests_failed);
  forward_seconds.Reach(engine.forward_seconds);
  const double new_tokens = computed_tokens.Reach(engine.computed_tokens);
  const double new_seconds = step_seconds.Reach(engine.step_seconds);
  const double new_steps = steps.Reach(engine.steps);
  if (new_steps == 0) return;
  iteration_tokens.Add(new_tokens / new_steps, new_steps);
  step_time.Add(new_seconds / new_steps, new_steps);
}

void Metrics::Impl::ReadProcess() {
  const ProcessStats process = ReadProcessStats();
  cpu_seconds.Reach(process.cpu_seconds);
  resident_bytes.Set(static_cast<double>(process.resident_bytes));
  virtual_bytes.Set(static_cast<double>(process.virtual_bytes));
  open_files.Set(static_cast<double>(process.open_files));
  max_files.Set(static_cast<double>(process.max_files));
  start_time.Set(process.start_time);
}

Metrics::Metrics(const MetricsOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Metrics::~Metrics() = default;

void Metrics::SetEngine(const EngineOptions& options, int64_t pages) {
  Impl& m = *impl_;
  // vLLM's labels of its cache; those that name another engine's settings are left out.
  Labels cache = m.model;
  cache["block_size"] = std::to_string(options.page_tokens);
  cache["cache_dtype"] = options.cache_dtype.empty() ? options.dtype : options.cache_dtype;
  cache["enable_prefix_caching"] = options.prefix_cache ? "True" : "False";
  cache["num_gpu_blocks"] = std::to_string(pages);
  m.Gauge("vllm:cache_config_info", "1; the labels have the cache's settings.", cache).Set(1);
  const Bounds bounds = LengthBounds(options.max_tokens);
  m.context = options.max_tokens;
  m.lengths.emplace(Impl::Lengths{
      m.Distribute("vllm:request_prompt_tokens", "Tokens of a prompt.", bounds),
      m.Distribute("vllm:request_generation_tokens", "Tokens of an answer.", bounds),
      m.Distribute("vllm:request_max_num_generation_tokens",
                   "Tokens of the longest answer to a prompt.", bounds),
      m.Distribute("vllm:request_params_max_tokens", "Most tokens that a request asked for.",
                   bounds),
      m.Distribute("vllm:request_prefill_kv_computed_tokens",
                   "Tokens of a prompt that were not found in the prefix cache.", bounds)});
}

void Metrics::FirstToken(double seconds) { impl_->first_token.Add(seconds); }
void Metrics::TokenLatency(double seconds) { impl_->token_latency.Add(seconds); }

void Metrics::RequestDone(const FinishedRequest& request) {
  Impl& m = *impl_;
  for (size_t i = 0; i < kReasons.size(); ++i)
    if (kReasons[i] == request.reason) m.finished[i].get().Increment();
  m.request_time.Add(request.seconds);
  if (request.queue_seconds) m.queue_time.Add(*request.queue_seconds);
  if (request.prefill_seconds) m.prefill_time.Add(*request.prefill_seconds);
  if (request.decode_seconds) {
    m.decode_time.Add(*request.decode_seconds);
    if (request.prefill_seconds)
      m.inference_time.Add(*request.prefill_seconds + *request.decode_seconds);
    if (request.generated_tokens > 1)
      m.mean_token.Add(*request.decode_seconds / static_cast<double>(request.generated_tokens - 1));
  }
  if (!m.lengths) return;
  m.lengths->prompt.Add(static_cast<double>(request.prompt_tokens));
  m.lengths->generated.Add(static_cast<double>(request.generated_tokens));
  m.lengths->most.Add(static_cast<double>(std::min(request.max_tokens, m.context)));
  m.lengths->computed.Add(static_cast<double>(request.prompt_tokens - request.cached_tokens));
}

void Metrics::PromptDone(int n, int64_t longest_answer) {
  impl_->answers.Add(n);
  if (impl_->lengths) impl_->lengths->longest.Add(static_cast<double>(longest_answer));
}

void Metrics::Refused(int http_status) {
  impl_->refused.at(RefusalLabel(http_status)).get().Increment();
}

void Metrics::Ignored(std::string_view name) {
  const auto found = impl_->ignored.find(std::string(name));
  (found == impl_->ignored.end() ? impl_->ignored.at(std::string(kOther)) : found->second)
      .get()
      .Increment();
}

void Metrics::Answered(int http_status, double seconds) {
  Impl& m = *impl_;
  const int status = http_status >= 100 && http_status <= 599 ? http_status : 0;
  auto found = m.answered.find(status);
  if (found == m.answered.end())
    found = m.answered
                .emplace(status, m.Count("latte:http_responses_total", "HTTP answers by status.",
                                         {{"status", std::to_string(status)}}))
                .first;
  found->second.get().Increment();
  m.answer_time.Add(seconds);
}

void Metrics::Observe(const ServerSnapshot& state) {
  Impl& m = *impl_;
  if (state.engine) m.ObserveEngine(*state.engine);
  m.step_age.Set(state.step_seconds);
  m.ready.Set(state.ready ? 1 : 0);
  m.connections.Set(static_cast<double>(state.http.connections));
  m.requests.Set(state);
  m.accepted.Reach(state.http.accepted);
  m.refused_connections.Reach(state.http.refused_connections);
  m.bad_requests.Reach(state.http.bad_requests);
  m.dropped_slow.Reach(state.http.dropped_slow);
  m.restarts.Reach(state.restarts);
  m.log_dropped.Reach(state.log_dropped);
}

std::string Metrics::Text() {
  impl_->ReadProcess();
  for (const auto& distribution : impl_->distributions) distribution->Flush();
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, impl_->registry.Collect());
  return std::move(out).str();
}

}  // namespace latte
