#include "src/engine/core/engine_core.h"

#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/models/registry.h"
#include "tests/support/scratch_dir.h"

namespace latte::engine_core_test {
namespace {

using testing_support::ScratchDir;

// What became of one answer.
struct Outcome {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;
  std::optional<FinishReason> finish;
  Error error;
  int64_t cached_tokens = 0;
  double queue_seconds = 0;
  double prefill_seconds = 0;
};

// A small checkpoint with random weights, and requests in tokens.
class EngineCoreTest : public testing::Test {
 protected:
  void SetUp() override { Load("v3_noaux"); }
  void Load(const std::string& golden) {
    auto loaded = LoadModel(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + golden);
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
  }

  static EngineOptions Small() {
    EngineOptions o;
    o.page_tokens = 16;
    o.max_tokens = 256;
    o.max_sequences = 8;
    o.max_batch_tokens = 64;
    o.cache_bytes = 1 << 20;
    o.threads = 1;
    o.deterministic = "strict";  // requests of one test hit the prefixes of others
    return o;
  }

  void Make(const EngineOptions& options) {
    const auto settings = ResolveOptions(options, model_->config(), machine_, {int64_t{1} << 30});
    ASSERT_TRUE(settings) << ToString(settings.error());
    auto made = EngineCore::Create({model_.get(), &machine_, nullptr}, *settings, key_);
    ASSERT_TRUE(made) << ToString(made.error());
    core_ = std::move(*made);
    outcomes_.clear();
    core_->SetEventSink([this](std::span<const TokenEvent> events) { Take(events); });
  }

  void Take(std::span<const TokenEvent> events) {
    for (const TokenEvent& e : events) {
      Outcome& out = outcomes_[{e.request, e.choice}];
      EXPECT_FALSE(out.finish) << "an event after the last";
      if (e.token) out.tokens.push_back(*e.token);
      if (e.logprobs) out.logprobs.push_back(e.logprobs->chosen.logprob);
      if (!e.prompt_logprobs.empty()) out.prompt_logprobs = e.prompt_logprobs;
      out.finish = e.finish;
      out.error = e.error;
      out.cached_tokens = e.cached_tokens;
      out.queue_seconds = e.queue_seconds;
      out.prefill_seconds = e.prefill_seconds;
    }
  }

  static Request Ask(std::vector<int32_t> tokens, int64_t max_tokens = 8) {
    Request r;
    r.tokens = std::move(tokens);
    r.sampling.temperature = 0.8;
    r.sampling.seed = 5;
    r.stop.max_tokens = max_tokens;
    r.stop.ignore_eos = true;
    r.logprobs = 0;
    return r;
  }
  std::vector<int32_t> Prompt(int64_t length, uint64_t seed = 1) const {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < length; ++i)
      out.push_back(static_cast<int32_t>(Mix64(seed * 1000003 + static_cast<uint64_t>(i)) %
                                         static_cast<uint64_t>(model_->config().vocab)));
    return out;
  }
  RequestId Submit(Request request) {
    const auto id = core_->Submit(std::move(request));
    EXPECT_TRUE(id) << ToString(id.error());
    return *id;
  }
  void RunAll() {
    const auto busy = [&] { return core_->Stats().running + core_->Stats().waiting > 0; };
    const auto patience = [&] { return std::chrono::seconds(busy() ? 30 : 0); };  // for the disk
    for (int steps = 0; core_->WaitForWork(std::chrono::steady_clock::now() + patience());
         ++steps) {
      ASSERT_LT(steps, 100000);
      ASSERT_TRUE(core_->Step());
    }
  }
  Outcome Run(Request request) {
    const RequestId id = Submit(std::move(request));
    RunAll();
    return outcomes_[{id, 0}];
  }
  void ExpectNothingHeld() const {
    const EngineStats stats = core_->Stats();
    EXPECT_EQ(stats.pages_used, 0);
    EXPECT_EQ(stats.running + stats.waiting, 0);
  }

  Machine machine_ = *Machine::Detect();
  ModelKey key_ = {};
  std::unique_ptr<Model> model_;
  std::unique_ptr<EngineCore> core_;
  std::map<std::pair<RequestId, int>, Outcome> outcomes_;
};

TEST_F(EngineCoreTest, AnswersEndByLengthStopTokenAndContext) {
  Make(Small());
  const Outcome whole = Run(Ask(Prompt(20)));
  EXPECT_EQ(whole.finish, FinishReason::kLength);
  EXPECT_EQ(whole.tokens.size(), 8u);

  Request stops = Ask(Prompt(20));
  stops.stop.tokens = {whole.tokens[3]};
  const Outcome stopped = Run(stops);
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  EXPECT_LE(stopped.tokens.size(), 3u);

  Request later = stops;
  later.stop.min_tokens = 6;
  EXPECT_GE(Run(later).tokens.size(), 6u);

  const Outcome full = Run(Ask(Prompt(250), 100));
  EXPECT_EQ(full.finish, FinishReason::kLength);
  EXPECT_EQ(full.tokens.size(), 6u);
  ExpectNothingHeld();
}

TEST_F(EngineCoreTest, RefusesWhatCanNeverBeServed) {
  Make(Small());
  const auto message = [&](const Request& r) {
    const auto id = core_->Submit(r);
    EXPECT_FALSE(id);
    return id ? "" : id.error().message;
  };
  EXPECT_NE(message(Ask({})).find("tokenizer"), std::string::npos);
  EXPECT_NE(message(Ask({-1})).find("-1"), std::string::npos);
  EXPECT_NE(message(Ask(Prompt(256))).find("256"), std::string::npos);
  Request many = Ask(Prompt(4));
  many.n = 9;
  EXPECT_NE(message(many).find("n:"), std::string::npos);
  many.n = 0;
  EXPECT_NE(message(many).find("n:"), std::string::npos);
  EXPECT_FALSE(core_->WaitForWork(std::chrono::steady_clock::now()));
}

TEST_F(EngineCoreTest, QueueIsBounded) {
  EngineOptions options = Small();
  options.max_queued_requests = 3;
  options.max_queued_tokens = 50;
  Make(options);
  Submit(Ask(Prompt(20)));
  Submit(Ask(Prompt(20)));
  EXPECT_EQ(core_->Submit(Ask(Prompt(20))).error().code, Code::kExhausted);
  Submit(Ask(Prompt(10)));
  EXPECT_EQ(core_->Submit(Ask(Prompt(1))).error().code, Code::kExhausted);
  ASSERT_TRUE(core_->Step());
  Submit(Ask(Prompt(20)));  // those before it were admitted
  RunAll();
  ExpectNothingHeld();
}

TEST_F(EngineCoreTest, TheCallerMayGiveTheId) {
  Make(Small());
  Request request = Ask(Prompt(20), 100);
  request.id = 7;
  EXPECT_EQ(Submit(request), 7U);
  EXPECT_EQ(Submit(Ask(Prompt(20))), 8U);
  request.id = 8;
  EXPECT_EQ(core_->Submit(request).error().message,
            "id of a request: expected more than 8, the last one, or 0 for the next, found 8");
  core_->Cancel(7);
  RunAll();
  ExpectNothingHeld();
}

TEST_F(EngineCoreTest, CancelEndsAllAnswersAndFreesEverything) {
  Make(Small());
  Request several = Ask(Prompt(40), 100);
  several.n = 3;
  for (int steps = 0; steps < 6; ++steps) {
    const RequestId id = Submit(several);
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(core_->Step());
    core_->Cancel(id);
    ASSERT_TRUE(core_->Step());
    for (int choice = 0; choice < 3; ++choice)
      EXPECT_EQ((outcomes_[{id, choice}].finish), FinishReason::kCancelled) << steps;
    ExpectNothingHeld();
    core_->Cancel(id);
    core_->Cancel(999);
    RunAll();
  }
  EXPECT_EQ(core_->Stats().requests_cancelled, 18);
}

TEST_F(EngineCoreTest, SeveralAnswersShareThePromptAndDrawForThemselves) {
  Make(Small());
  Request r = Ask(Prompt(37), 12);
  const Outcome alone = Run(r);
  r.n = 4;
  const RequestId id = Submit(r);
  RunAll();
  EXPECT_EQ((outcomes_[{id, 0}].tokens), alone.tokens);
  std::set<std::vector<int32_t>> different;
  for (int choice = 0; choice < 4; ++choice) different.insert(outcomes_[{id, choice}].tokens);
  EXPECT_EQ(different.size(), 4u);
  // Each is what a request with that seed alone would give.
  EXPECT_EQ(core_->Stats().prompt_tokens, 2 * 37);
  ExpectNothingHeld();
}

TEST_F(EngineCoreTest, OneBadRequestEndsAlone) {
  Make(Small());
  const Outcome good = Run(Ask(Prompt(20)));
  Request bad = Ask(Prompt(20, 2));
  for (int64_t t = 0; t < std::min<int64_t>(1024, model_->config().vocab); ++t)
    bad.stop.tokens.push_back(static_cast<int32_t>(t));
  bad.stop.tokens.resize(128);
  const RequestId first = Submit(bad);
  const RequestId second = Submit(Ask(Prompt(20)));
  RunAll();
  EXPECT_TRUE((outcomes_[{first, 0}].finish));
  EXPECT_EQ((outcomes_[{second, 0}].tokens), good.tokens);
}

TEST_F(EngineCoreTest, PromptLogprobsAreThoseOfTheWholePromptHoweverCut) {
  EngineOptions options = Small();
  Request r = Ask(Prompt(100));
  r.prompt_logprobs = 2;
  Make(options);
  const Outcome whole = Run(r);
  ASSERT_EQ(whole.prompt_logprobs.size(), 99u);
  EXPECT_EQ(whole.prompt_logprobs[5].chosen.token, r.tokens[6]);
  EXPECT_EQ(whole.prompt_logprobs[5].top.size(), 2u);
  options.max_batch_tokens = 16;
  Make(options);
  const Outcome cut = Run(r);
  ASSERT_EQ(cut.prompt_logprobs.size(), 99u);
  for (size_t i = 0; i < 99; ++i)
    EXPECT_EQ(cut.prompt_logprobs[i].chosen.logprob, whole.prompt_logprobs[i].chosen.logprob);
}

TEST_F(EngineCoreTest, KnownPrefixesAreNotComputedAgain) {
  Make(Small());
  std::vector<int32_t> shared = Prompt(64);
  Run(Ask(shared));
  const int64_t before = core_->Stats().computed_tokens;
  std::vector<int32_t> longer = shared;
  longer.push_back(3);
  const Outcome hit = Run(Ask(longer, 1));
  EXPECT_EQ(hit.cached_tokens, 64);
  EXPECT_EQ(core_->Stats().computed_tokens - before, 1);
  Request salted = Ask(longer, 1);
  salted.cache_salt = "other";
  EXPECT_EQ(Run(salted).cached_tokens, 0);
  EngineOptions off = Small();
  off.prefix_cache = false;
  Make(off);
  Run(Ask(shared));
  EXPECT_EQ(Run(Ask(longer)).cached_tokens, 0);
  EXPECT_EQ(core_->Stats().pages_cached, 0);
}

TEST_F(EngineCoreTest, PrefixesReturnFromDisk) {
  const ScratchDir dir;
  EngineOptions options = Small();
  options.cache_dir = dir.File("prefixes");
  options.deterministic = "strict";
  Make(options);
  const Outcome cold = Run(Ask(Prompt(70)));
  ASSERT_TRUE(core_->SavePrefixes());
  EXPECT_EQ(core_->Stats().disk_tokens, 0);
  Make(options);  // a restart
  const Outcome warm = Run(Ask(Prompt(70)));
  EXPECT_EQ(warm.cached_tokens, 64);
  EXPECT_EQ(core_->Stats().disk_tokens, 64);
  EXPECT_EQ(warm.tokens, cold.tokens);
  EXPECT_EQ(warm.logprobs, cold.logprobs);
  key_[0] = std::byte{1};  // another model finds nothing
  Make(options);
  EXPECT_EQ(Run(Ask(Prompt(70))).cached_tokens, 0);
}

TEST_F(EngineCoreTest, NoTokensAtAllIsAnAnswerToo) {
  Make(Small());
  Request r = Ask(Prompt(20), 0);
  r.prompt_logprobs = 0;
  r.n = 2;
  const RequestId id = Submit(r);
  RunAll();
  for (int choice = 0; choice < 2; ++choice) {
    const Outcome& out = outcomes_[{id, choice}];
    EXPECT_EQ(out.finish, FinishReason::kLength);
    EXPECT_TRUE(out.tokens.empty());
  }
  EXPECT_EQ((outcomes_[{id, 0}].prompt_logprobs.size()), 19u);
  ExpectNothingHeld();
}

TEST_F(EngineCoreTest, EventsTellTheTimesOfQueueAndPrompt) {
  Make(Small());
  const RequestId id = Submit(Ask(Prompt(20)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // nothing runs it yet
  RunAll();
  const Outcome& out = outcomes_[{id, 0}];
  EXPECT_GE(out.queue_seconds, 0.02);
  EXPECT_GT(out.prefill_seconds, 0);
  EXPECT_LT(out.prefill_seconds, 3600);
}

TEST_F(EngineCoreTest, WakeEndsAWait) {
  Make(Small());
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(core_->WaitForWork(now));
  core_->Wake();
  EXPECT_TRUE(core_->WaitForWork(now));
  ASSERT_TRUE(core_->Step());
  EXPECT_FALSE(core_->WaitForWork(now));
}

}  // namespace
}  // namespace latte::engine_core_test
