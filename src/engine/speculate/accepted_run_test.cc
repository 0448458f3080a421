// What happens inside of a run of accepted drafts: conditions that end an answer, and chance.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "src/engine/core/engine_core.h"
#include "src/models/registry.h"

namespace latte::accepted_run_test {
namespace {

class AcceptedRunTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string dir = std::string(LATTE_SOURCE_DIR) + "/models/tiny";
    auto loaded = LoadModel(dir, {.mtp = true});
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
    tokenizer_ = *Tokenizer::Load(dir);
    for (const std::string drafts : {"0", "4"}) engines_.push_back(Make(drafts));
  }

  std::unique_ptr<EngineCore> Make(const std::string& drafts) {
    EngineOptions o;
    o.max_tokens = 512;
    o.max_sequences = 64;
    o.draft_tokens = drafts;
    o.cache_bytes = int64_t{256} << 20;
    const auto settings = ResolveOptions(o, model_->config(), machine_, {});
    EXPECT_TRUE(settings) << ToString(settings.error());
    return std::move(*EngineCore::Create({model_.get(), &machine_, &*tokenizer_}, *settings));
  }

  Request Ask() const {
    Request r;
    r.prompt = "Once upon a time there was a little girl named Lily. She";
    r.sampling.temperature = 0;
    r.stop.max_tokens = 48;
    return r;
  }

  // Steps until the engine is idle; returns the events of every answer.
  std::map<std::pair<uint64_t, int>, std::vector<TokenEvent>> Events(EngineCore& engine) {
    std::map<std::pair<uint64_t, int>, std::vector<TokenEvent>> out;
    engine.SetEventSink([&](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) out[{e.user_data, e.choice}].push_back(e);
    });
    while (engine.WaitForWork(std::chrono::steady_clock::now())) EXPECT_TRUE(engine.Step());
    engine.SetEventSink({});
    return out;
  }

  std::vector<TokenEvent> Answer(EngineCore& engine, const Request& request) {
    EXPECT_TRUE(engine.Submit(request));
    return Events(engine).begin()->second;
  }

  static std::string Text(const std::vector<TokenEvent>& events) {
    std::string out;
    for (const TokenEvent& e : events) out += e.text;
    return out;
  }

  // With and without drafts: the same tokens, text and reason.
  void ExpectSame(const Request& request, const std::string& what) {
    const std::vector<TokenEvent> expected = Answer(*engines_[0], request);
    const std::vector<TokenEvent> found = Answer(*engines_[1], request);
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].token, expected[i].token) << what << ", event " << i;
      EXPECT_EQ(found[i].text, expected[i].text) << what << ", event " << i;
      EXPECT_EQ(found[i].generated_tokens, expected[i].generated_tokens) << what;
      EXPECT_EQ(found[i].finish, expected[i].finish) << what << ", event " << i;
    }
    EXPECT_EQ(engines_[1]->Stats().pages_used, 0) << what;
  }

  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Model> model_;
  std::optional<Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<EngineCore>> engines_;  // without drafts, with drafts
};

TEST_F(AcceptedRunTest, ManyDraftsAreAccepted) {
  const std::vector<TokenEvent> events = Answer(*engines_[1], Ask());
  const TokenEvent& last = events.back();
  EXPECT_GT(last.accepted_tokens, 16);
  EXPECT_LE(last.accepted_tokens, last.drafted_tokens);
  EXPECT_LE(last.accepted_tokens, last.generated_tokens);
  // Without drafts every token takes a step.
  EXPECT_LT(engines_[1]->Stats().steps, last.generated_tokens - last.accepted_tokens + 2);
}

TEST_F(AcceptedRunTest, EndsAnywhere) {
  const std::vector<TokenEvent> whole = Answer(*engines_[0], Ask());
  for (size_t i = 0; i < 24; ++i) {
    const std::string what = "after " + std::to_string(i);
    Request shorter = Ask();
    shorter.stop.max_tokens = static_cast<int64_t>(i) + 1;
    ExpectSame(shorter, "max_tokens " + what);
    Request stop = Ask();
    stop.stop.tokens = {*whole[i].token};
    ExpectSame(stop, "stop token " + what);
    stop.stop.min_tokens = static_cast<int64_t>(i) + 2;
    ExpectSame(stop, "min_tokens " + what);
    Request text = Ask();
    text.stop.strings = {whole[i].text + whole[i + 1].text};
    if (text.stop.strings.front().size() > 1) ExpectSame(text, "stop string " + what);
  }
}

TEST_F(AcceptedRunTest, CancelledAnywhere) {
  for (int steps = 1; steps < 12; ++steps) {
    EngineCore& engine = *engines_[1];
    const RequestId id = *engine.Submit(Ask());
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(engine.Step());
    engine.Cancel(id);
    ASSERT_TRUE(engine.Step());
    EXPECT_EQ(engine.Stats().pages_used, 0) << steps;
  }
}

// Pearson's statistic of counts against probabilities, over the tokens that are expected at least 5
// times and all others together.
struct ChiSquare {
  double statistic = 0;
  int degrees = 0;

  void Add(const std::map<int32_t, int>& counts, double all,
           const std::vector<TokenLogprob>& likeliest) {
    constexpr double kLeast = 5;
    int cells = 0;
    double rest_p = 1;
    double rest_count = all;
    const auto add = [&](double count, double expected) {
      statistic += (count - expected) * (count - expected) / expected;
      ++cells;
    };
    for (const TokenLogprob& token : likeliest) {
      const double p = std::exp(static_cast<double>(token.logprob));
      if (p * all < kLeast) continue;
      const auto found = counts.find(token.token);
      const double count = found == counts.end() ? 0 : found->second;
      add(count, p * all);
      rest_p -= p;
      rest_count -= count;
    }
    if (rest_p * all >= kLeast) add(rest_count, rest_p * all);
    degrees += std::max(0, cells - 1);
  }
};

// The third token of an answer after the same first two, over many seeds: drawn with the
// probabilities that the model gives, and the same token for every seed as without drafts.
TEST_F(AcceptedRunTest, SampledTokensHaveTheProbabilitiesOfTheModel) {
  constexpr int kRequests = 64;
  constexpr int kAnswers = 64;
  std::map<std::pair<uint64_t, int>, std::vector<TokenEvent>> found[2];
  for (size_t e = 0; e < 2; ++e) {
    for (uint64_t i = 0; i < kRequests; ++i) {
      Request r = Ask();
      r.prompt = "One day";
      r.sampling.temperature = 1;
      r.sampling.seed = 1000 + i;
      r.stop.max_tokens = 4;
      r.stop.ignore_eos = true;
      r.n = kAnswers;
      r.logprobs = 20;
      r.user_data = i;
      ASSERT_TRUE(engines_[e]->Submit(r));
    }
    found[e] = Events(*engines_[e]);
  }
  EXPECT_GT(engines_[1]->Stats().accepted_tokens, kRequests * kAnswers / 2);

  std::map<std::pair<int32_t, int32_t>, std::vector<const TokenEvent*>> thirds;
  for (const auto& [key, events] : found[1]) {
    ASSERT_EQ(events.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(events[i].token, found[0][key][i].token);
    thirds[{*events[0].token, *events[1].token}].push_back(&events[2]);
  }
  ChiSquare sum;
  for (const auto& [beginning, events] : thirds) {
    std::map<int32_t, int> counts;
    for (const TokenEvent* event : events) ++counts[*event->token];
    sum.Add(counts, static_cast<double>(events.size()), events.front()->logprobs->top);
  }
  ASSERT_GE(sum.degrees, 20);
  // Mean and standard deviation of the distribution with so many degrees of freedom.
  const double deviation = std::sqrt(2.0 * sum.degrees);
  EXPECT_LT(sum.statistic, sum.degrees + 5 * deviation) << sum.degrees << " degrees of freedom";
  EXPECT_GT(sum.statistic, sum.degrees - 5 * deviation) << sum.degrees << " degrees of freedom";
  RecordProperty("statistic", std::to_string(sum.statistic));
  RecordProperty("degrees", sum.degrees);
}

}  // namespace
}  // namespace latte::accepted_run_test
