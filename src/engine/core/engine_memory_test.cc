// When memory runs out, either a request ends and the engine continues, or the engine reports that
// it cannot continue and is destroyed without a crash.
#include <gtest/gtest.h>

#include "src/base/limits/out_of_memory.h"
#include "tests/support/engine_run.h"
#include "tests/support/fake_model.h"
#include "tests/support/plain_answer.h"
#include "tests/support/step/no_followers.h"

namespace latte::engine_memory_test {
namespace {

using testing_support::AnswerPlainly;
using testing_support::EngineRun;
using testing_support::FakeModel;
using testing_support::kFirstRareToken;
using testing_support::PlainAnswer;

constexpr int64_t kMaxTokens = 128;

class EngineMemoryTest : public testing::Test {
 protected:
  std::unique_ptr<EngineRun> Make(StepAnnouncer* followers = nullptr) const {
    EngineOptions o;
    o.draft_tokens = "0";
    o.page_tokens = 16;
    o.max_tokens = kMaxTokens;
    o.max_sequences = 8;
    o.max_batch_tokens = 200;
    o.threads = 1;
    o.deterministic = "strict";
    o.cache_bytes = int64_t{1} << 20;
    auto run = EngineRun::Create(model_, o, {}, {}, followers);
    EXPECT_TRUE(run) << ToString(run.error());
    return std::move(*run);
  }

  static Request Ask(int64_t length, int32_t seed) {
    Request r;
    for (int64_t i = 0; i < length; ++i)
      r.tokens.push_back((seed * 7 + static_cast<int32_t>(i) * 3) % kFirstRareToken);
    r.sampling.seed = static_cast<uint64_t>(seed);
    r.stop.max_tokens = 12;
    r.logprobs = 0;
    return r;
  }
  static RequestId Submit(EngineRun& run, const Request& request) {
    const auto id = run.core().Submit(request);
    EXPECT_TRUE(id) << ToString(id.error());
    return *id;
  }
  void ExpectPlain(EngineRun& run, RequestId id, const Request& request) const {
    const PlainAnswer plain = AnswerPlainly(request, 0, kMaxTokens, {});
    EXPECT_EQ(run.Of(id).tokens, plain.tokens);
    EXPECT_EQ(run.Of(id).finish, plain.finish);
  }
  static void ExpectExhausted(EngineRun& run, RequestId id) {
    EXPECT_EQ(run.Of(id).finish, FinishReason::kError);
    EXPECT_EQ(run.Of(id).error.code, Code::kExhausted);
  }
  // A forward step of more than `tokens` finds no memory.
  void LimitTokens(size_t tokens) {
    model_.on_forward = [tokens](const StepContext& step) {
      if (step.tokens.size() > tokens) throw OutOfMemory(1, "a test");
    };
  }

  FakeModel model_;
};

TEST_F(EngineMemoryTest, TheLargestRequestOfAStepEndsAndTheOthersAreAnsweredAsEver) {
  LimitTokens(60);
  const auto run = Make();
  const Request small[] = {Ask(20, 1), Ask(25, 2)};
  const RequestId first = Submit(*run, small[0]);
  const RequestId large = Submit(*run, Ask(90, 3));
  const RequestId second = Submit(*run, small[1]);
  EXPECT_EQ(run->Finish(), "");
  ExpectExhausted(*run, large);
  EXPECT_TRUE(run->Of(large).tokens.empty());
  ExpectPlain(*run, first, small[0]);
  ExpectPlain(*run, second, small[1]);
}

TEST_F(EngineMemoryTest, AnswersUnderWayGoOnBesideAPromptThatIsTooLarge) {
  LimitTokens(60);
  const auto run = Make();
  const Request small = Ask(20, 1);
  const RequestId id = Submit(*run, small);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(run->core().Step());
  Request large = Ask(90, 2);
  large.n = 3;
  const RequestId refused = Submit(*run, large);
  EXPECT_EQ(run->Finish(), "");
  for (int choice = 0; choice < 3; ++choice)
    EXPECT_EQ(run->Of(refused, choice).error.code, Code::kExhausted);
  ExpectPlain(*run, id, small);
}

TEST_F(EngineMemoryTest, WithoutMemoryForAnyStepEveryRequestEnds) {
  LimitTokens(0);
  const auto run = Make();
  const RequestId ids[] = {Submit(*run, Ask(20, 1)), Submit(*run, Ask(5, 2))};
  EXPECT_EQ(run->Finish(), "");
  for (const RequestId id : ids) ExpectExhausted(*run, id);
  model_.on_forward = {};  // there is memory again
  const Request later = Ask(20, 1);
  const RequestId again = Submit(*run, later);
  EXPECT_EQ(run->Finish(), "");
  ExpectPlain(*run, again, later);
}

TEST_F(EngineMemoryTest, WithoutMemoryForLogitsTheAnswersThatDrawEnd) {
  bool short_of = true;
  model_.fault = [&](int32_t, int64_t) -> std::optional<float> {
    if (short_of) throw OutOfMemory(1, "a test");
    return std::nullopt;
  };
  const auto run = Make();
  const RequestId id = Submit(*run, Ask(20, 1));
  Request asks_for_prompt = Ask(30, 2);
  asks_for_prompt.prompt_logprobs = 0;
  const RequestId prompt = Submit(*run, asks_for_prompt);
  EXPECT_EQ(run->Finish(), "");
  ExpectExhausted(*run, id);
  ExpectExhausted(*run, prompt);
  short_of = false;
  const Request later = Ask(20, 1);
  const RequestId again = Submit(*run, later);
  EXPECT_EQ(run->Finish(), "");
  ExpectPlain(*run, again, later);
}

// No request could answer for what fails at the end of a step.
TEST_F(EngineMemoryTest, ElsewhereTheEngineSaysThatItIsAtItsEnd) {
  testing_support::NoFollowers followers;
  const auto run = Make(&followers);
  followers.on_finish = [] { throw std::bad_alloc(); };
  Submit(*run, Ask(20, 1));
  for (int i = 0; i < 3; ++i) {
    const Status step = run->core().Step();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, Code::kExhausted);
    followers.on_finish = {};  // there is memory again, but the step was cut short
  }
}

TEST_F(EngineMemoryTest, WhatTheSinkThrowsReachesTheCaller) {
  const auto run = Make();
  run->core().SetEventSink([](std::span<const TokenEvent>) { throw std::runtime_error("sink"); });
  Submit(*run, Ask(20, 1));
  EXPECT_THROW(static_cast<void>(run->core().Step()), std::runtime_error);
}

}  // namespace
}  // namespace latte::engine_memory_test
