#include "src/jobs/bench_serve/workload.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "src/base/json.h"

namespace latte::workload_test {
namespace {

BenchServeOptions Options() {
  BenchServeOptions out;
  out.requests = 2000;
  out.rate = 50;
  out.input = {8, 16};
  out.output = {1, 4};
  return out;
}

std::vector<TraceRequest> Make(const BenchServeOptions& options) {
  return *MakeWorkload(options, 100);
}

TEST(Workload, LengthsAndIdsAreInTheirRanges) {
  const std::vector<TraceRequest> requests = Make(Options());
  ASSERT_EQ(requests.size(), 2000u);
  std::set<size_t> lengths;
  std::set<int64_t> outputs;
  for (const TraceRequest& request : requests) {
    lengths.insert(request.tokens.size());
    outputs.insert(request.output_tokens);
    for (const int32_t id : request.tokens) EXPECT_TRUE(id >= 0 && id < 100);
  }
  EXPECT_EQ(lengths.size(), 9u);
  EXPECT_EQ(*lengths.begin(), 8u);
  EXPECT_EQ(outputs, (std::set<int64_t>{1, 2, 3, 4}));
}

TEST(Workload, SameSeedSameRequests) {
  BenchServeOptions options = Options();
  const auto first = Make(options);
  const auto again = Make(options);
  options.seed = 1;
  const auto other = Make(options);
  EXPECT_EQ(first[7].tokens, again[7].tokens);
  EXPECT_EQ(first[7].arrival_s, again[7].arrival_s);
  EXPECT_NE(first[7].tokens, other[7].tokens);
}

// The rate is kept whatever the burstiness, which decides how much the gaps vary.
TEST(Workload, Arrivals) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    BenchServeOptions options = Options();
    options.burstiness = burstiness;
    const auto requests = Make(options);
    double sum = 0;
    double squares = 0;
    for (size_t i = 1; i < requests.size(); ++i) {
      const double gap = requests[i].arrival_s - requests[i - 1].arrival_s;
      ASSERT_GE(gap, 0);
      sum += gap;
      squares += gap * gap;
    }
    const auto n = static_cast<double>(requests.size() - 1);
    const double mean = sum / n;
    EXPECT_NEAR(mean, 1.0 / 50, 0.1 / 50) << burstiness;
    const double variation = (squares / n - mean * mean) / (mean * mean);
    EXPECT_NEAR(variation, 1 / burstiness, 0.25 / burstiness);
  }
  BenchServeOptions options = Options();
  options.rate = std::numeric_limits<double>::infinity();
  for (const TraceRequest& request : Make(options)) EXPECT_EQ(request.arrival_s, 0);
}

TEST(Workload, PrefixesAreSharedWithinGroups) {
  BenchServeOptions options = Options();
  options.shared_prefix = 20;
  options.prefixes = 3;
  std::set<std::vector<int32_t>> prefixes;
  for (const TraceRequest& request : Make(options)) {
    EXPECT_GE(request.tokens.size(), 28u);
    prefixes.insert({request.tokens.begin(), request.tokens.begin() + 20});
  }
  EXPECT_EQ(prefixes.size(), 3u);
}

TEST(Workload, Bodies) {
  const TraceRequest request{.tokens = {5, 6, 5}, .output_tokens = 9, .priority = 2};
  RequestForm form{.model = "m", .ignore_eos = true, .token_ids = true};
  EXPECT_EQ(RequestBody(request, form),
            R"({"model":"m","prompt":[5,6,5],"max_tokens":9,"temperature":0,"ignore_eos":true,)"
            R"("priority":2,"stream":true,"stream_options":{"include_usage":true}})");
  form = {.model = "m", .chat = true, .stream = false};
  const Json chat = *Json::Parse(RequestBody({.tokens = {5, 6, 5}}, form), "body");
  const Json message = chat.Get("messages")->At(0);
  EXPECT_EQ(*message.GetString("role"), "user");
  EXPECT_EQ(*message.GetString("content"), WordsFor(std::vector<int32_t>{5, 6, 5}));
  EXPECT_FALSE(chat.Find("stream_options"));
}

TEST(Workload, Words) {
  const std::string text = WordsFor(std::vector<int32_t>{5, 6, 5});
  const size_t first = text.find(' ');
  EXPECT_EQ(text.substr(0, first), text.substr(text.rfind(' ') + 1));
  EXPECT_EQ(WordsFor({}), "");
}

TEST(BenchServeOptions, Texts) {
  EXPECT_EQ(ParseTokenRange("--x", "7")->high, 7);
  EXPECT_EQ(ParseTokenRange("--x", "7:9")->low, 7);
  for (const char* text : {"", "0", "9:7", "7:", ":7", "7:9:11", "x", "-1", "99999999999"})
    EXPECT_FALSE(ParseTokenRange("--x", text)) << text;
  EXPECT_EQ(*ParseRate("2.5"), 2.5);
  EXPECT_TRUE(std::isinf(*ParseRate("inf")));
  for (const char* text : {"", "0", "-1", "nan", "x", "1x"}) EXPECT_FALSE(ParseRate(text)) << text;
  EXPECT_EQ(ParseGoodput("ttft:200,e2el:1000.5")->e2el_ms, 1000.5);
  for (const char* text : {"ttft", "ttft:", "ttft:0", "x:1", "ttft:1,,", "tpot:inf"})
    EXPECT_FALSE(ParseGoodput(text)) << text;
}

}  // namespace
}  // namespace latte::workload_test
