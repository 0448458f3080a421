#include "src/jobs/bench_serve/report.h"

#include <gtest/gtest.h>

#include "src/base/json_out.h"

namespace latte::report_test {
namespace {

// Sent at `start`; its first text comes after `first` seconds, others every `gap` seconds.
ServeRecord Stream(double start, double first, double gap, int64_t tokens) {
  ServeRecord out;
  out.due_s = start - 0.001;
  out.start_s = start;
  for (int64_t i = 0; i < tokens; ++i)
    out.event_s.push_back(start + first + gap * static_cast<double>(i));
  out.end_s = out.event_s.back();
  out.prompt_tokens = 10;
  out.output_tokens = tokens;
  out.counted = true;
  return out;
}

ServeRecord Failed(double end, std::string kind, std::string message) {
  ServeRecord out;
  out.end_s = end;
  out.error_kind = std::move(kind);
  out.error = std::move(message);
  return out;
}

TEST(ServeReport, FiguresOfStreams) {
  // Times to first token of 100, 200, 300 and 400 ms; 11 tokens, 20 ms apart.
  LoadResult load;
  for (int i = 1; i <= 4; ++i) load.records.push_back(Stream(i - 1, 0.1 * i, 0.02, 11));
  load.peak_in_flight = 3;
  const JsonOut report = ServeReport(load, {});
  EXPECT_EQ(report["completed"], 4);
  EXPECT_EQ(report["failed"], 0);
  EXPECT_EQ(report["total_input_tokens"], 40);
  EXPECT_EQ(report["total_output_tokens"], 44);
  EXPECT_EQ(report["max_concurrent_requests"], 3);
  EXPECT_DOUBLE_EQ(report["duration"], 3.6);  // 0 to 3 + 0.4 + 0.2
  EXPECT_DOUBLE_EQ(report["request_throughput"], 4 / 3.6);
  EXPECT_DOUBLE_EQ(report["output_throughput"], 44 / 3.6);
  EXPECT_DOUBLE_EQ(report["total_token_throughput"], 84 / 3.6);
  EXPECT_NEAR(report["mean_ttft_ms"], 250, 1e-9);
  EXPECT_NEAR(report["median_ttft_ms"], 250, 1e-9);
  EXPECT_NEAR(report["p90_ttft_ms"], 370, 1e-9);  // numpy: 300 + 0.7 · 100
  EXPECT_NEAR(report["p99_ttft_ms"], 397, 1e-9);
  EXPECT_NEAR(report["std_ttft_ms"], 111.80339887498948, 1e-9);
  EXPECT_NEAR(report["mean_tpot_ms"], 20, 1e-9);
  EXPECT_NEAR(report["p99_itl_ms"], 20, 1e-9);
  EXPECT_NEAR(report["mean_e2el_ms"], 450, 1e-9);
  EXPECT_NEAR(report["mean_send_delay_ms"], 1, 1e-9);
  EXPECT_NEAR(report["p99_event_delay_ms"], 0, 1e-9);
  EXPECT_NEAR(report["min_stream_rate"], 50, 1e-6);
  EXPECT_NEAR(report["ratio_stream_rate"], 1, 1e-9);
  EXPECT_TRUE(report["request_goodput"].is_null());
}

// One stream at 10 tokens/s with one event 300 ms late, one at 40 tokens/s.
TEST(ServeReport, UnevenStreams) {
  LoadResult load;
  ServeRecord late = Stream(0, 0.1, 0.1, 11);
  for (size_t i = 5; i < late.event_s.size(); ++i) late.event_s[i] += 0.3;
  late.end_s = late.event_s.back();
  load.records = {late, Stream(0, 0.1, 0.025, 11)};
  const JsonOut report = ServeReport(load, {});
  EXPECT_NEAR(report["mean_event_delay_ms"], 300.0 / 20, 1e-6);
  EXPECT_NEAR(report["p99_event_delay_ms"], 300 * 0.81, 1e-6);  // rank 18.81 of 0 to 19
  EXPECT_NEAR(report["max_stream_rate"], 40, 1e-6);
  EXPECT_NEAR(report["min_stream_rate"], 10 / 1.3, 1e-6);
  EXPECT_NEAR(report["ratio_stream_rate"], 5.2, 1e-6);
}

TEST(ServeReport, Goodput) {
  LoadResult load;
  for (int i = 1; i <= 4; ++i) load.records.push_back(Stream(0, 0.1 * i, 0.02, 11));
  const auto good = [&](const char* text) {
    const JsonOut report = ServeReport(load, *ParseGoodput(text));
    return report["request_goodput"].get<double>() * report["duration"].get<double>();
  };
  EXPECT_NEAR(good("ttft:250"), 2, 1e-9);
  EXPECT_NEAR(good("tpot:19"), 0, 1e-9);
  EXPECT_NEAR(good("tpot:21,e2el:550"), 3, 1e-9);
}

TEST(ServeReport, ErrorsAreCountedByKind) {
  LoadResult load;
  load.records = {Failed(1, "HTTP 429", "the queue is full"), Failed(2, "HTTP 429", "second"),
                  Stream(0, 0.1, 0.1, 2), Failed(3, "timeout", "no response within 1 s")};
  load.cancelled = 5;
  load.unsent = 6;
  const JsonOut report = ServeReport(load, {});
  EXPECT_EQ(report["completed"], 1);
  EXPECT_EQ(report["failed"], 3);
  ASSERT_EQ(report["errors"].size(), 2u);
  EXPECT_EQ(Dump(report["errors"][0]),
            R"({"kind":"HTTP 429","count":2,"message":"the queue is full"})");
  const std::string table = ServeTable(report);
  EXPECT_NE(table.find("2 x HTTP 429: the queue is full"), std::string::npos);
  EXPECT_NE(table.find("Requests not sent"), std::string::npos);
}

// Whole answers have no time to first token; answers of one token have no gaps.
TEST(ServeReport, TimesThatDoNotExistAreNull) {
  LoadResult load;
  ServeRecord whole;
  whole.end_s = 0.5;
  whole.output_tokens = 7;
  load.records = {whole};
  JsonOut report = ServeReport(load, {});
  EXPECT_TRUE(report["mean_ttft_ms"].is_null());
  EXPECT_TRUE(report["p99_tpot_ms"].is_null());
  EXPECT_NEAR(report["mean_e2el_ms"], 500, 1e-9);
  EXPECT_EQ(ServeTable(report).find("TTFT"), std::string::npos);
  load.records = {Stream(0, 0.1, 0.1, 1)};
  report = ServeReport(load, {});
  EXPECT_NEAR(report["mean_ttft_ms"], 100, 1e-9);
  EXPECT_TRUE(report["mean_tpot_ms"].is_null());
  EXPECT_TRUE(report["ratio_stream_rate"].is_null());
}

TEST(ServeReport, NothingAtAll) {
  const JsonOut report = ServeReport({}, {});
  EXPECT_EQ(report["completed"], 0);
  EXPECT_EQ(report["duration"], 0);
  EXPECT_FALSE(ServeTable(report).empty());
}

}  // namespace
}  // namespace latte::report_test
