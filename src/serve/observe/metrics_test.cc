#include "src/serve/observe/metrics.h"

#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"

namespace latte::metrics_test {
namespace {

constexpr std::string_view kModel = R"({engine="0",model_name="tiny"})";

// The samples of Metrics::Text: "name{labels}" → value.
std::map<std::string, double> Samples(const std::string& text) {
  std::map<std::string, double> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(out.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second)
        << line;
  }
  return out;
}

std::string SourceFile(const std::string& path) {
  const Result<std::string> text = ReadFile(std::string(LATTE_SOURCE_DIR) + "/" + path, 1 << 20);
  EXPECT_TRUE(text) << path;
  return text.value_or("");
}

// "name type" of all metrics of a server.
std::set<std::string> Types(Metrics& metrics) {
  metrics.Answered(200, 0.1);  // its labels are made by use
  std::set<std::string> out;
  std::istringstream lines(metrics.Text());
  constexpr std::string_view kType = "# TYPE ";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kType)) out.insert(line.substr(kType.size()));
  return out;
}

// The names of metrics in `text`, such as a query.
std::set<std::string> Names(const std::string& text) {
  std::set<std::string> out;
  for (const char* prefix : {"vllm:", "latte:", "process_"})
    for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) {
      const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_:", at);
      out.insert(text.substr(at, end - at));
      at = end;
    }
  return out;
}

EngineOptions Options() {
  EngineOptions options;
  options.max_tokens = 2048;
  options.page_tokens = 64;
  options.cache_dtype = "fp8";
  return options;
}

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() { metrics_.SetEngine(Options(), 100); }

  double Value(const std::string& name) {
    const auto samples = Samples(metrics_.Text());
    const auto found = samples.find(name);
    EXPECT_NE(found, samples.end()) << name;
    return found == samples.end() ? std::nan("") : found->second;
  }
  double OfModel(const std::string& name) { return Value(name + std::string(kModel)); }
  double Bucket(const std::string& name, const std::string& le) {
    return Value(name + "_bucket{engine=\"0\",model_name=\"tiny\",le=\"" + le + "\"}");
  }

  Metrics metrics_{{.model_name = "tiny", .version = "1.2.3", .ignored_names = {"user", "store"}}};
};

TEST_F(MetricsTest, CountsTokenLatenciesInVllmsBuckets) {
  metrics_.TokenLatency(0.01);  // an upper bound belongs to its bucket
  metrics_.TokenLatency(0.0101);
  metrics_.TokenLatency(100);
  EXPECT_EQ(Bucket("vllm:inter_token_latency_seconds", "0.01"), 1);
  EXPECT_EQ(Bucket("vllm:inter_token_latency_seconds", "0.025"), 2);
  EXPECT_EQ(Bucket("vllm:inter_token_latency_seconds", "80"), 2);
  EXPECT_EQ(Bucket("vllm:inter_token_latency_seconds", "+Inf"), 3);
  EXPECT_EQ(OfModel("vllm:inter_token_latency_seconds_count"), 3);
  EXPECT_DOUBLE_EQ(OfModel("vllm:inter_token_latency_seconds_sum"), 100.0201);
  metrics_.TokenLatency(0.5);  // after a text was made
  EXPECT_EQ(OfModel("vllm:inter_token_latency_seconds_count"), 4);
}

TEST_F(MetricsTest, FirstTokens) {
  metrics_.FirstToken(0.3);
  EXPECT_EQ(Bucket("vllm:time_to_first_token_seconds", "0.25"), 0);
  EXPECT_EQ(Bucket("vllm:time_to_first_token_seconds", "0.5"), 1);
  EXPECT_EQ(Bucket("vllm:time_to_first_token_seconds", "2560"), 1);
}

TEST_F(MetricsTest, TimesThatMakeNoSenseDoNoHarm) {
  metrics_.TokenLatency(-1);  // a clock of another core
  metrics_.TokenLatency(std::nan(""));
  EXPECT_EQ(OfModel("vllm:inter_token_latency_seconds_count"), 1);
  EXPECT_EQ(OfModel("vllm:inter_token_latency_seconds_sum"), 0);
}

TEST_F(MetricsTest, FinishedRequests) {
  metrics_.RequestDone({.reason = FinishReason::kLength,
                        .prompt_tokens = 1000,
                        .cached_tokens = 600,
                        .generated_tokens = 11,
                        .max_tokens = 16,
                        .seconds = 7,
                        .queue_seconds = 1,
                        .prefill_seconds = 2,
                        .decode_seconds = 4});
  metrics_.RequestDone({.reason = FinishReason::kCancelled, .max_tokens = 1 << 30, .seconds = 1});
  EXPECT_EQ(
      Value(R"(vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"})"),
      1);
  EXPECT_EQ(
      Value(R"(vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"})"),
      1);
  EXPECT_EQ(
      Value(R"(vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"})"),
      0);
  EXPECT_EQ(OfModel("vllm:e2e_request_latency_seconds_count"), 2);
  EXPECT_EQ(OfModel("vllm:e2e_request_latency_seconds_sum"), 8);
  EXPECT_EQ(OfModel("vllm:request_queue_time_seconds_count"), 1);  // unknown of the second
  EXPECT_EQ(OfModel("vllm:request_prefill_time_seconds_sum"), 2);
  EXPECT_EQ(OfModel("vllm:request_decode_time_seconds_sum"), 4);
  EXPECT_EQ(OfModel("vllm:request_inference_time_seconds_sum"), 6);
  EXPECT_DOUBLE_EQ(OfModel("vllm:request_time_per_output_token_seconds_sum"), 0.4);
  EXPECT_EQ(OfModel("vllm:request_prompt_tokens_sum"), 1000);
  EXPECT_EQ(OfModel("vllm:request_generation_tokens_sum"), 11);
  EXPECT_EQ(OfModel("vllm:request_params_max_tokens_sum"), 16 + 2048);
  EXPECT_EQ(OfModel("vllm:request_prefill_kv_computed_tokens_sum"), 400);
}

TEST_F(MetricsTest, PromptsWithSeveralAnswers) {
  metrics_.PromptDone(4, 77);
  EXPECT_EQ(Bucket("vllm:request_params_n", "2"), 0);
  EXPECT_EQ(Bucket("vllm:request_params_n", "5"), 1);
  EXPECT_EQ(OfModel("vllm:request_max_num_generation_tokens_sum"), 77);
}

TEST_F(MetricsTest, LengthsHaveBucketsUpToTheContext) {
  EXPECT_EQ(Bucket("vllm:request_prompt_tokens", "1"), 0);
  EXPECT_EQ(Bucket("vllm:request_prompt_tokens", "2000"), 0);
  EXPECT_EQ(metrics_.Text().find(
                R"(vllm:request_prompt_tokens_bucket{engine="0",model_name="tiny",le="5000"})"),
            std::string::npos);
}

TEST_F(MetricsTest, FollowsTheEngine) {
  ServerSnapshot state;
  state.engine = EngineStats{.waiting = 3,
                             .running = 4,
                             .pages_total = 100,
                             .pages_used = 25,
                             .pages_cached = 5,
                             .page_bytes = 4096,
                             .steps = 2,
                             .requests_failed = 1,
                             .requests_cancelled = 2,
                             .preemptions = 3,
                             .prompt_tokens = 500,
                             .cached_tokens = 128,
                             .disk_tokens = 64,
                             .computed_tokens = 20,
                             .generated_tokens = 7,
                             .step_seconds = 0.4,
                             .forward_seconds = 0.3,
                             .drafted_tokens = 6,
                             .accepted_tokens = 5};
  metrics_.Observe(state);
  EXPECT_EQ(OfModel("vllm:spec_decode_num_draft_tokens_total"), 6);
  EXPECT_EQ(OfModel("vllm:spec_decode_num_accepted_tokens_total"), 5);
  EXPECT_EQ(OfModel("vllm:num_requests_running"), 4);
  EXPECT_EQ(OfModel("vllm:num_requests_waiting"), 3);
  EXPECT_EQ(OfModel("vllm:kv_cache_usage_perc"), 0.25);
  EXPECT_EQ(OfModel("vllm:gpu_cache_usage_perc"), 0.25);
  EXPECT_EQ(OfModel("vllm:prompt_tokens_total"), 500);
  EXPECT_EQ(OfModel("vllm:prompt_tokens_cached_total"), 128);
  EXPECT_EQ(OfModel("vllm:prefix_cache_queries_total"), 500);
  EXPECT_EQ(OfModel("vllm:prefix_cache_hits_total"), 128);
  EXPECT_EQ(OfModel("vllm:generation_tokens_total"), 7);
  EXPECT_EQ(OfModel("vllm:num_preemptions_total"), 3);
  EXPECT_EQ(OfModel("vllm:iteration_tokens_total_count"), 2);
  EXPECT_EQ(OfModel("vllm:iteration_tokens_total_sum"), 20);
  EXPECT_EQ(Bucket("vllm:iteration_tokens_total", "8"), 0);
  EXPECT_EQ(Bucket("vllm:iteration_tokens_total", "16"), 2);
  EXPECT_EQ(OfModel("latte:step_seconds_count"), 2);
  EXPECT_EQ(Value("latte:engine_steps_total"), 2);
  EXPECT_EQ(Value("latte:engine_step_seconds_total"), 0.4);
  EXPECT_EQ(Value("latte:engine_forward_seconds_total"), 0.3);
  EXPECT_EQ(Value("latte:computed_tokens_total"), 20);
  EXPECT_EQ(Value("latte:prefix_cache_disk_tokens_total"), 64);
  EXPECT_EQ(Value("latte:answers_cancelled_total"), 2);
  EXPECT_EQ(Value("latte:answers_failed_total"), 1);
  EXPECT_EQ(Value("latte:cache_pages"), 100);
  EXPECT_EQ(Value("latte:cache_pages_used"), 25);
  EXPECT_EQ(Value("latte:cache_pages_cached"), 5);
  EXPECT_EQ(Value("latte:cache_page_bytes"), 4096);
}

TEST_F(MetricsTest, CountersNeverGoDown) {
  ServerSnapshot state;
  state.engine = EngineStats{.steps = 5, .generated_tokens = 100};
  state.http.accepted = 10;
  metrics_.Observe(state);
  state.engine = EngineStats{.steps = 1, .generated_tokens = 30};
  state.http.accepted = 3;
  metrics_.Observe(state);
  EXPECT_EQ(OfModel("vllm:generation_tokens_total"), 100);
  EXPECT_EQ(Value("latte:connections_accepted_total"), 10);
  state.engine = EngineStats{.steps = 6, .generated_tokens = 101};
  metrics_.Observe(state);
  EXPECT_EQ(OfModel("vllm:generation_tokens_total"), 101);
  EXPECT_EQ(Value("latte:engine_steps_total"), 6);
}

TEST_F(MetricsTest, FollowsTheServer) {
  metrics_.Observe({.engine = {},
                    .http = {.connections = 3,
                             .accepted = 9,
                             .refused_connections = 1,
                             .bad_requests = 4,
                             .dropped_slow = 2,
                             .unsent_bytes = 777},
                    .ready = true,
                    .step_seconds = 1.5,
                    .log_dropped = 6});
  EXPECT_EQ(Value("latte:connections"), 3);
  EXPECT_EQ(Value("latte:connections_accepted_total"), 9);
  EXPECT_EQ(Value("latte:connections_refused_total"), 1);
  EXPECT_EQ(Value("latte:bad_requests_total"), 4);
  EXPECT_EQ(Value("latte:slow_readers_dropped_total"), 2);
  EXPECT_EQ(Value("latte:unsent_bytes"), 777);
  EXPECT_EQ(Value("latte:ready"), 1);
  EXPECT_EQ(Value("latte:engine_step_age_seconds"), 1.5);
  EXPECT_EQ(Value("latte:log_lines_dropped_total"), 6);
  EXPECT_EQ(OfModel("vllm:num_requests_running"), 0);
}

TEST_F(MetricsTest, RefusalsHaveAFixedSetOfReasons) {
  metrics_.Refused(429);
  metrics_.Refused(401);
  metrics_.Refused(401);
  metrics_.Refused(418);
  metrics_.Refused(-1);
  EXPECT_EQ(Value(R"(latte:requests_refused_total{reason="overloaded"})"), 1);
  EXPECT_EQ(Value(R"(latte:requests_refused_total{reason="unauthorized"})"), 2);
  EXPECT_EQ(Value(R"(latte:requests_refused_total{reason="other"})"), 2);
  EXPECT_EQ(Value(R"(latte:requests_refused_total{reason="timeout"})"), 0);
}

TEST_F(MetricsTest, IgnoredFieldsHaveAFixedSetOfNames) {
  metrics_.Ignored("user");
  metrics_.Ignored("evil\"} 1\nvllm:forged 5");
  metrics_.Ignored("");
  EXPECT_EQ(Value(R"(latte:ignored_fields_total{field="user"})"), 1);
  EXPECT_EQ(Value(R"(latte:ignored_fields_total{field="store"})"), 0);
  EXPECT_EQ(Value(R"(latte:ignored_fields_total{field="other"})"), 2);
  EXPECT_EQ(metrics_.Text().find("forged"), std::string::npos);
}

TEST_F(MetricsTest, AnswersByStatus) {
  metrics_.Answered(200, 0.1);
  metrics_.Answered(200, 0.4);
  metrics_.Answered(499, 2);
  metrics_.Answered(1 << 20, 0);
  EXPECT_EQ(Value(R"(latte:http_responses_total{status="200"})"), 2);
  EXPECT_EQ(Value(R"(latte:http_responses_total{status="499"})"), 1);
  EXPECT_EQ(Value(R"(latte:http_responses_total{status="0"})"), 1);
  EXPECT_EQ(OfModel("latte:http_response_seconds_count"), 4);
}

TEST_F(MetricsTest, TellsVersionAndCache) {
  EXPECT_EQ(Value(R"(latte:build_info{version="1.2.3"})"), 1);
  EXPECT_EQ(
      Value(R"(vllm:cache_config_info{block_size="64",cache_dtype="fp8",)"
            R"(enable_prefix_caching="True",engine="0",model_name="tiny",num_gpu_blocks="100"})"),
      1);
  EXPECT_EQ(Value("latte:ready"), 0);
}

TEST_F(MetricsTest, TellsOfTheProcess) {
  EXPECT_GT(Value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(Value("process_virtual_memory_bytes"), Value("process_resident_memory_bytes"));
  EXPECT_GE(Value("process_open_fds"), 3);
  EXPECT_GE(Value("process_max_fds"), Value("process_open_fds"));
  EXPECT_GT(Value("process_cpu_seconds_total"), 0);
  EXPECT_GT(Value("process_start_time_seconds"), 1.7e9);
  EXPECT_LE(Value("process_start_time_seconds"), static_cast<double>(time(nullptr)) + 1);
}

// The tables have "| `name` | type | unit | meaning |".
TEST_F(MetricsTest, TheDocumentListsAllMetrics) {
  std::set<std::string> documented;
  std::istringstream lines(SourceFile("docs/metrics.md"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const size_t name_end = line.find('`', 3);
    const size_t type = line.find("| ", name_end) + 2;
    documented.insert(line.substr(3, name_end - 3) + " " +
                      line.substr(type, line.find(" |", type) - type));
  }
  EXPECT_EQ(documented, Types(metrics_));
}

TEST_F(MetricsTest, TheDocumentListsAllReasons) {
  const std::string document = SourceFile("docs/metrics.md");
  for (const auto& [name, value] : Samples(metrics_.Text())) {
    const std::string start = "latte:requests_refused_total{reason=\"";
    if (!name.starts_with(start)) continue;
    const std::string reason =
        name.substr(start.size(), name.find('"', start.size()) - start.size());
    EXPECT_NE(document.find("`" + reason + "`"), std::string::npos) << reason;
  }
}

TEST_F(MetricsTest, TheDashboardUsesMetricsThatExist) {
  const std::string text = SourceFile("examples/monitoring/grafana.json");
  EXPECT_TRUE(Json::Parse(text, "grafana.json"));
  std::set<std::string> known;
  for (const std::string& line : Types(metrics_)) {
    const std::string name = line.substr(0, line.find(' '));
    if (line.ends_with(" histogram")) {
      for (const char* suffix : {"_bucket", "_sum", "_count"}) known.insert(name + suffix);
    } else {
      known.insert(name);
    }
  }
  const std::set<std::string> used = Names(text);
  EXPECT_GE(used.size(), 30U);
  for (const std::string& name : used) EXPECT_TRUE(known.count(name)) << name;
}

TEST(Metrics, WorksBeforeTheModelIsLoaded) {
  Metrics metrics({.model_name = "tiny", .version = "1", .ignored_names = {}});
  metrics.Observe({});
  metrics.RequestDone({});
  metrics.PromptDone(1, 2);
  metrics.Ignored("user");
  const auto samples = Samples(metrics.Text());
  EXPECT_EQ(samples.at("latte:ready"), 0);
  EXPECT_EQ(samples.at("vllm:num_requests_running" + std::string(kModel)), 0);
}

TEST(Metrics, EscapesTheModelsName) {
  Metrics metrics({.model_name = "a\"\\\n\xff", .version = "1", .ignored_names = {}});
  EXPECT_NE(metrics.Text().find("model_name=\"a\\\"\\\\\\n\uFFFD\""), std::string::npos);
}

}  // namespace
}  // namespace latte::metrics_test
