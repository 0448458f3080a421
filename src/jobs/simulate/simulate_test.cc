#include "src/jobs/simulate/simulate.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "src/base/json_out.h"

namespace latte::simulate_test {
namespace {

// A step costs 1 s, and 0.1 s per token for the first 16 tokens.
StepCost Simple() {
  StepCost cost;
  cost.seconds[0] = 1;
  cost.seconds[3] = 0.1;
  return cost;
}

class SimulateTest : public testing::Test {
 protected:
  SimulateTest() {
    settings_.options.max_batch_tokens = 10;
    settings_.options.max_sequences = 4;
    settings_.options.page_tokens = 16;
    settings_.options.max_tokens = 1000;
    settings_.pages = 100;
    settings_.attention = AttentionMode::kLatent;  // the path of prompts without a model
  }
  void Add(double arrival, int64_t prompt, int64_t output) {
    TraceRequest request;
    request.arrival_s = arrival;
    for (int64_t i = 0; i < prompt; ++i)
      request.tokens.push_back(static_cast<int32_t>(trace_.size()));
    request.output_tokens = output;
    trace_.push_back(request);
  }
  TraceResult Run() { return Simulate(trace_, config_, settings_, cost_); }

  std::vector<TraceRequest> trace_;
  ModelConfig config_;
  Settings settings_;
  StepCost cost_ = Simple();
};

TEST_F(SimulateTest, TheClockMovesByStepsAndWaitsForArrivals) {
  Add(5, 12, 3);  // pieces of 10 and 2 tokens, two steps of one
  const TraceResult out = Run();
  const std::vector<double>& at = out.requests[0].token_s;
  ASSERT_EQ(at.size(), 3u);
  EXPECT_DOUBLE_EQ(at[0], 5 + 2.0 + 1.2);
  EXPECT_DOUBLE_EQ(at[1], at[0] + 1.1);
  EXPECT_DOUBLE_EQ(at[2], at[1] + 1.1);
  EXPECT_EQ(out.counts.steps, 4);
  EXPECT_DOUBLE_EQ(out.counts.step_seconds, at[2] - 5);
  EXPECT_EQ(out.counts.pages_peak, 1);
}

TEST_F(SimulateTest, ProgressCountsEveryRequestOnce) {
  settings_.options.max_queued_requests = 2;
  for (int i = 0; i < 5; ++i) Add(0, 4, 2);  // three of them are refused
  std::vector<int64_t> seen;
  const auto show = [&](int64_t done, int64_t total, std::string_view) {
    EXPECT_EQ(total, 5);
    seen.push_back(done);
  };
  Simulate(trace_, config_, settings_, cost_, show);
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(SimulateTest, TimeOfProgressIsNotThatOfTheSimulation) {
  Add(0, 4, 2);
  constexpr auto kPause = std::chrono::milliseconds(200);
  const auto show = [&](int64_t, int64_t, std::string_view) {
    std::this_thread::sleep_for(kPause);
  };
  EXPECT_LT(Simulate(trace_, config_, settings_, cost_, show).counts.real_seconds, 0.2);
}

TEST_F(SimulateTest, TheFirstStepAfterIdlenessIsPricedAsSuch) {
  cost_.seconds[13] = 0.5;
  cost_.seconds[14] = 0.01;
  Add(0, 4, 2);
  Add(0.1, 4, 1);  // the engine is busy
  Add(50, 5, 2);
  const TraceResult out = Run();
  EXPECT_DOUBLE_EQ(out.requests[0].token_s[0], 1.4);  // it had just started
  EXPECT_DOUBLE_EQ(out.requests[1].token_s[0], 1.4 + 1.5);
  const std::vector<double>& woken = out.requests[2].token_s;
  EXPECT_DOUBLE_EQ(woken[0], 50 + 1.5 + 0.5 + 0.05);
  EXPECT_DOUBLE_EQ(woken[1], woken[0] + 1.1);
}

TEST_F(SimulateTest, MetricsCanBeRecomputed) {
  Add(0, 4, 2);
  Add(0, 4, 1);
  const JsonOut metrics = Run().Metrics();
  // One step of 8 tokens, one of 1.
  EXPECT_NEAR(metrics["ttft_ms_p50"].get<double>(), 1800, 1e-6);
  EXPECT_NEAR(metrics["inter_token_ms_p50"].get<double>(), 1100, 1e-6);
  EXPECT_NEAR(metrics["end_to_end_ms_p99"].get<double>(), 2900, 1e-6);
  EXPECT_NEAR(metrics["end_to_end_ms_p50"].get<double>(), 1800, 1e-6);
  EXPECT_NEAR(metrics["output_tokens_per_s"].get<double>(), 3 / 2.9, 1e-9);
  EXPECT_NEAR(metrics["total_tokens_per_s"].get<double>(), 11 / 2.9, 1e-9);
  EXPECT_NEAR(metrics["requests_per_s"].get<double>(), 2 / 2.9, 1e-9);
  EXPECT_EQ(metrics["requests"], 2);
}

TEST_F(SimulateTest, KnownBeginningsAreCounted) {
  Add(0, 40, 1);
  Add(100, 40, 1);
  trace_[1].tokens = trace_[0].tokens;
  EXPECT_EQ(Run().counts.prefix_hit_tokens, 32);
  settings_.options.prefix_cache = false;
  EXPECT_EQ(Run().counts.prefix_hit_tokens, 0);
}

TEST_F(SimulateTest, AFullQueueRefuses) {
  settings_.options.max_queued_requests = 2;
  for (int i = 0; i < 5; ++i) Add(0, 4, 1);
  const TraceResult out = Run();
  EXPECT_EQ(out.Metrics()["refused"], 3);
  EXPECT_EQ(out.requests[1].token_s.size(), 1u);
  EXPECT_TRUE(out.requests[2].token_s.empty());
}

TEST_F(SimulateTest, TooFewPagesPreemptAndEveryAnswerIsWhole) {
  settings_.pages = 4;
  for (int i = 0; i < 6; ++i) Add(0, 10, 40);
  const TraceResult out = Run();
  EXPECT_GT(out.counts.preemptions, 0);
  EXPECT_EQ(out.counts.pages_peak, 4);
  for (const RequestTimes& request : out.requests) EXPECT_EQ(request.token_s.size(), 40u);
  EXPECT_EQ(Run().Metrics()["duration_s"], out.Metrics()["duration_s"]);
}

// The metrics of one group, as they were before a simulation knew of several.
constexpr const char* kOneGroup =
    R"({"requests":104,"refused":16,"duration_s":3.252381199820926,)"
    R"("output_tokens_per_s":986.3542441386115,"total_tokens_per_s":5469.223595616465,)"
    R"("requests_per_s":31.976571505740523,"ttft_ms_p50":425.0922053681565,)"
    R"("ttft_ms_p90":622.0033542104009,"ttft_ms_p99":703.4792009406847,)"
    R"("ttft_ms_mean":406.7998982492024,"inter_token_ms_p50":2.1646249999999756,)"
    R"("inter_token_ms_p90":2.8679999999998707,"inter_token_ms_p99":3.3594999999999597,)"
    R"("inter_token_ms_mean":2.2794832071520665,"end_to_end_ms_p50":485.2649962178972,)"
    R"("end_to_end_ms_p90":676.9802998541634,"end_to_end_ms_p99":770.775200940684,)"
    R"("end_to_end_ms_mean":474.83370473958706,"waiting_mean":12.67251375769523,)"
    R"("waiting_peak":21,"pages_peak":29,"pages_total":29,"preemptions":5,)"
    R"("prefix_hit_tokens":3552,"steps":1401,"step_s":3.171900749999999})";

TEST_F(SimulateTest, OneGroupIsOneEngine) {
  constexpr double kMicroseconds[] = {1000, 20, 50,    30, 10,  5, 0, 1, 0,
                                      0,    2,  0.125, 40, 500, 8, 0, 0};
  std::ranges::copy(kMicroseconds, cost_.seconds.begin());
  for (double& seconds : cost_.seconds) seconds *= 1e-6;
  settings_.options.max_batch_tokens = 40;
  settings_.options.max_sequences = 6;
  settings_.options.max_tokens = 400;
  settings_.options.max_queued_requests = 20;
  settings_.pages = 29;
  const TraceShape shape = {.requests = 120,
                            .rate = 40,
                            .prompt_mean = 90,
                            .output_mean = 30,
                            .shared_prefix = 48,
                            .prefix_groups = 3,
                            .seed = 7};
  trace_ = *MakeTrace(shape, {.vocab = 2048, .max_tokens = 400});
  for (const char* policy : {"balanced", "tokens", "round-robin"}) {
    settings_.options.dp_policy = policy;
    JsonOut metrics = Run().Metrics();
    metrics.erase("real_s");
    EXPECT_EQ(Dump(metrics), kOneGroup);
  }
}

TEST_F(SimulateTest, AStepOfSeveralGroupsTakesAsLongAsTheSlowest) {
  settings_.options.dp = 3;
  Add(0, 4, 1);
  Add(0, 10, 1);
  const TraceResult out = Run();
  EXPECT_DOUBLE_EQ(out.requests[0].token_s[0], 2);
  EXPECT_DOUBLE_EQ(out.requests[1].token_s[0], 2);
  EXPECT_EQ(out.counts.steps, 1);
  EXPECT_EQ(out.counts.pages_total, 300);
  // 1.4 s of 2 in one group, none in the third.
  EXPECT_DOUBLE_EQ(out.Metrics()["idle_share"].get<double>(), (0.6 + 2) / 6);
}

TEST_F(SimulateTest, GroupsHaveCachesOfTheirOwn) {
  settings_.options.dp = 2;
  Add(0, 40, 1);
  Add(100, 40, 1);
  trace_[1].tokens = trace_[0].tokens;
  EXPECT_EQ(Run().counts.prefix_hit_tokens, 32);
  for (const char* policy : {"tokens", "round-robin"}) {
    settings_.options.dp_policy = policy;
    EXPECT_EQ(Run().counts.prefix_hit_tokens, 0) << policy;
  }
}

// As rank 0 does, which hears of a step when it has ended.
TEST_F(SimulateTest, ARequestThatComesDuringAStepIsAssignedBeforeItsReport) {
  settings_.options.dp = 2;
  Add(0, 10, 1);  // load 12 until 2 s
  Add(0, 4, 5);   // load 9
  Add(1, 10, 1);
  // It computes 9 tokens in a step with the second request, then one.
  EXPECT_DOUBLE_EQ(Run().requests[2].token_s[0], 2 + 2 + 1.2);
  trace_[2].arrival_s = 2.5;  // the first has ended
  EXPECT_DOUBLE_EQ(Run().requests[2].token_s[0], 2 + 1.1 + 2);
}

TEST_F(SimulateTest, TheChoiceHearsOfPrompts) {
  settings_.options.dp = 2;
  Add(0, 30, 1);  // three steps
  Add(0, 3, 18);
  Add(3, 10, 1);
  // After a step, 20 tokens are left of the first prompt.
  EXPECT_DOUBLE_EQ(Run().requests[2].token_s[0], 4 + 2 + 1.2);
  trace_[2].arrival_s = 5;  // after two steps, 10 are left: less than the second answer
  EXPECT_DOUBLE_EQ(Run().requests[2].token_s[0], 6 + 2);
}

TEST_F(SimulateTest, TheChoiceHearsOfEnds) {
  settings_.options.dp = 2;
  Add(0, 80, 1);  // until 16 s
  Add(0, 4, 12);
  Add(17, 10, 1);
  EXPECT_DOUBLE_EQ(Run().requests[2].token_s[0], 16 + 1.1 + 2);
}

TEST_F(SimulateTest, EveryGroupHasAQueueOfItsOwn) {
  settings_.options.dp = 2;
  settings_.options.max_queued_requests = 2;
  settings_.options.max_sequences = 1;
  for (int i = 0; i < 5; ++i) Add(0, 4, 1);
  const TraceResult out = Run();
  EXPECT_EQ(out.Metrics()["refused"], 1);
  EXPECT_EQ(out.counts.waiting_peak, 2);  // one in each, after the first step
}

TEST_F(SimulateTest, TheSameTraceGivesTheSameMetrics) {
  settings_.options.dp = 4;
  settings_.pages = 40;
  const TraceShape shape = {.requests = 80, .rate = 2, .shared_prefix = 48, .prefix_groups = 5};
  trace_ = *MakeTrace(shape, {.vocab = 100, .max_tokens = 600});
  std::set<std::string> all;
  for (const char* policy : {"balanced", "tokens", "round-robin"}) {
    settings_.options.dp_policy = policy;
    for (int run = 0; run < 2; ++run) {
      JsonOut metrics = Run().Metrics();
      metrics.erase("real_s");
      all.insert(Dump(metrics));
    }
  }
  EXPECT_EQ(all.size(), 3u);
}

}  // namespace
}  // namespace latte::simulate_test
