// Constrained answers of models/tiny through the engine.
#include <map>

#include <gtest/gtest.h>

#include "latte/engine.h"

#include "src/base/json.h"
#include "src/grammar/grammar.h"

namespace latte::engine_grammar_test {
namespace {

constexpr const char* kPerson =
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "likes": {"type": "array", "items": {"enum": ["tea", "cake", "rain"]}, "maxItems": 3}},
        "required": ["name", "age", "likes"]})";

struct Answer {
  std::string text;
  std::optional<FinishReason> finish;
  Error error;
  int64_t drafted = 0;
};

class EngineGrammarTest : public testing::Test {
 protected:
  void Make(const std::function<void(EngineOptions&)>& change = {}) {
    EngineOptions options;
    options.model = std::string(LATTE_SOURCE_DIR) + "/models/tiny";
    options.threads = 1;
    options.cache_bytes = 16 << 20;
    options.max_tokens = 512;
    options.draft_tokens = "0";
    if (change) change(options);
    auto made = Engine::Create(options);
    ASSERT_TRUE(made) << ToString(made.error());
    engine_ = *std::move(made);
    engine_->SetEventSink([this](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) {
        Answer& answer = answers_[{e.user_data, e.choice}];
        answer.text += e.text;
        answer.drafted = e.drafted_tokens;
        if (!e.finish) continue;
        answer.finish = e.finish;
        answer.error = e.error;
        ++ended_;
      }
    });
  }

  static Request Ask(const std::string& grammar, uint64_t seed = 1) {
    Request request;
    request.prompt = "Once upon a time";
    request.grammar = grammar;
    request.sampling.temperature = 1.5;
    request.sampling.seed = seed;
    request.stop.max_tokens = 200;
    request.user_data = seed;
    return request;
  }

  RequestId Submit(const Request& request) {
    submitted_ += request.n;
    const auto id = engine_->Submit(request);
    EXPECT_TRUE(id) << ToString(id.error());
    return id ? *id : 0;
  }

  void Run() {
    while (ended_ < submitted_) {
      ASSERT_TRUE(engine_->Step());
      engine_->WaitForWork(std::chrono::steady_clock::now() + std::chrono::seconds(5));
    }
  }

  Answer Single(const Request& request) {
    answers_.clear();
    Submit(request);
    Run();
    return answers_.begin()->second;
  }

  static void ExpectPerson(const Answer& answer) {
    ASSERT_TRUE(answer.finish);
    if (answer.finish == FinishReason::kLength) return;
    ASSERT_EQ(answer.finish, FinishReason::kStop) << answer.error.message;
    const auto json = Json::Parse(answer.text, "answer");
    ASSERT_TRUE(json) << answer.text;
    EXPECT_TRUE(json->GetString("name")) << answer.text;
    const auto age = json->GetInt("age");
    ASSERT_TRUE(age) << answer.text;
    EXPECT_LE(*age, 120);
    EXPECT_LE(json->Get("likes")->size(), 3U) << answer.text;
  }

  std::unique_ptr<Engine> engine_;
  std::map<std::pair<uint64_t, int>, Answer> answers_;
  int ended_ = 0;
  int submitted_ = 0;
};

TEST_F(EngineGrammarTest, AnswersMatchTheSchemaAtAnyTemperature) {
  Make();
  for (uint64_t seed = 0; seed < 48; ++seed) {
    Request request = Ask(kPerson, seed);
    request.sampling.temperature = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 1.5 : 100;
    Submit(request);
  }
  Run();
  int ended = 0;
  for (const auto& [key, answer] : answers_) {
    ExpectPerson(answer);
    ended += answer.finish == FinishReason::kStop ? 1 : 0;
  }
  EXPECT_GT(ended, 12);
  // Each token has a mask, and so has the end of an answer.
  const EngineStats stats = engine_->Stats();
  EXPECT_EQ(stats.masks, stats.generated_tokens + ended);
  EXPECT_GT(stats.mask_seconds, 0);
  EXPECT_LE(stats.mask_wait_seconds, stats.step_seconds);
}

TEST_F(EngineGrammarTest, OtherRequestsAreAsWithoutThem) {
  Make();
  Request free = Ask("", 7);
  const Answer alone = Single(free);
  answers_.clear();
  for (uint64_t seed = 100; seed < 106; ++seed) Submit(Ask(kPerson, seed));
  Submit(free);
  Run();
  EXPECT_EQ((answers_[{7, 0}].text), alone.text);
}

TEST_F(EngineGrammarTest, AnAnswerThatMatchesIsLeftAsItIs) {
  Make();
  Request free = Ask("", 3);
  free.sampling.temperature = 0;
  free.stop.max_tokens = 20;
  const Answer alone = Single(free);
  free.grammar = R"((.|\n)*)";
  free.grammar_syntax = "regex";
  EXPECT_EQ(Single(free).text, alone.text);
}

TEST_F(EngineGrammarTest, DraftsChangeNothing) {
  std::map<uint64_t, std::string> plain;
  for (const int drafts : {0, 3}) {
    Make([&](EngineOptions& o) {
      o.draft_tokens = std::to_string(drafts);
      o.drafter = "lookup";
    });
    answers_.clear();
    for (uint64_t seed = 0; seed < 16; ++seed) {
      Request request = Ask(kPerson, seed);
      request.sampling.temperature = 0.6;
      request.prompt = R"({"name": "Tom", "age": 7, "likes": ["tea"]} {"name": "Tom", "age": )";
      Submit(request);
    }
    Run();
    int64_t drafted = 0;
    for (const auto& [key, answer] : answers_) {
      if (drafts == 0)
        plain[key.first] = answer.text;
      else
        EXPECT_EQ(answer.text, plain[key.first]);
      drafted += answer.drafted;
    }
    EXPECT_EQ(drafted > 0, drafts > 0);
  }
}

TEST_F(EngineGrammarTest, EveryChoiceMatches) {
  Make();
  Request request = Ask(kPerson, 5);
  request.n = 6;
  Submit(request);
  Run();
  ASSERT_EQ(answers_.size(), 6U);
  for (const auto& [key, answer] : answers_) ExpectPerson(answer);
  EXPECT_NE((answers_[{5, 0}].text), (answers_[{5, 1}].text));
}

TEST_F(EngineGrammarTest, AnswersThatArePreemptedMatch) {
  Make([](EngineOptions& o) {
    o.cache_bytes = 300 << 10;
    o.max_tokens = 256;
  });
  for (uint64_t seed = 0; seed < 12; ++seed) Submit(Ask(kPerson, seed));
  Run();
  EXPECT_GT(engine_->Stats().preemptions, 0);
  for (const auto& [key, answer] : answers_) ExpectPerson(answer);
}

TEST_F(EngineGrammarTest, TheEndOfTheGrammarIsTheEndOfTheAnswer) {
  Make();
  Request request = Ask("yes|no", 2);
  request.grammar_syntax = "regex";
  for (const bool ignore_eos : {false, true}) {
    request.stop.ignore_eos = ignore_eos;
    const Answer answer = Single(request);
    EXPECT_EQ(answer.finish, FinishReason::kStop) << answer.error.message;
    EXPECT_TRUE(answer.text == "yes" || answer.text == "no") << answer.text;
  }
  request.stop.ignore_eos = false;
  request.stop.min_tokens = 50;  // the model may not end it, but nothing else may follow
  EXPECT_EQ(Single(request).finish, FinishReason::kStop);
}

TEST_F(EngineGrammarTest, ALimitCutsTheAnswer) {
  Make();
  Request request = Ask(kPerson, 2);
  request.stop.max_tokens = 5;
  EXPECT_EQ(Single(request).finish, FinishReason::kLength);
}

TEST_F(EngineGrammarTest, WhatIsNoGrammarFailsAlone) {
  Make();
  Request bad = Ask("root ::= none", 1);
  bad.grammar_syntax = "ebnf";
  Submit(bad);
  Submit(Ask(kPerson, 2));
  Run();
  EXPECT_EQ((answers_[{1, 0}].finish), FinishReason::kError);
  EXPECT_EQ((answers_[{1, 0}].error.code), Code::kInvalidArgument);
  ExpectPerson(answers_[{2, 0}]);
  EXPECT_EQ(engine_->Stats().waiting, 0);

  bad.grammar_syntax = "poem";
  const auto refused = engine_->Submit(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace latte::engine_grammar_test
