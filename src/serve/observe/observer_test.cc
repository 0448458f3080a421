#include "src/serve/observe/observer.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/json.h"

namespace latte::observer_test {
namespace {

class ObserverTest : public testing::Test {
 protected:
  ObserverTest() {
    options_.log_level = "error";
    observer_ = *Observer::Create(options_, "tiny", "1");
    EngineOptions engine;
    engine.max_tokens = 2048;
    observer_->metrics().SetEngine(engine, 10);
  }

  double Value(const std::string& name) {
    std::istringstream lines(observer_->metrics().Text());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
    ADD_FAILURE() << name;
    return -1;
  }
  double OfModel(const std::string& name) {
    return Value(name + R"({engine="0",model_name="tiny"})");
  }
  double Ended(const std::string& reason) {
    return Value(R"(vllm:request_success_total{engine="0",finished_reason=")" + reason +
                 R"(",model_name="tiny"})");
  }

  void Begin(const std::string& id, int prompts = 1, int n = 1) {
    listed_.push_back(observer_->Began(id, ApiEndpoint::kCompletions, "127.0.0.1:9"));
    ApiRequest parsed;
    parsed.requests.resize(static_cast<size_t>(prompts));
    parsed.requests.front().stop.max_tokens = 50;
    parsed.reply.model = "tiny";
    parsed.reply.n = n;
    parsed.ignored = {"user", "best_of"};
    observer_->Parsed(id, parsed);
  }

  void Token(const std::string& id, uint64_t prompt, int choice, int64_t generated,
             std::optional<FinishReason> finish = std::nullopt) {
    TokenEvent event;
    event.user_data = prompt;
    event.choice = choice;
    event.token = 3;
    event.prompt_tokens = 10;
    event.cached_tokens = 4;
    event.queue_seconds = 0.5;
    event.prefill_seconds = 0.25;
    event.generated_tokens = generated;
    event.finish = finish;
    observer_->Event(id, event);
  }

  ServeOptions options_;
  std::unique_ptr<Observer> observer_;
  std::vector<std::shared_ptr<void>> listed_;
};

TEST_F(ObserverTest, CountsEveryAnswerAndEveryPrompt) {
  Begin("r", 2, 2);
  for (const uint64_t prompt : {7, 8})
    for (const int choice : {0, 1}) {
      Token("r", prompt, choice, 1);
      Token("r", prompt, choice, 2);
      Token("r", prompt, choice, 3, choice == 0 ? FinishReason::kStop : FinishReason::kLength);
    }
  observer_->Ended("r", {}, std::nullopt);
  EXPECT_EQ(Ended("stop"), 2);
  EXPECT_EQ(Ended("length"), 2);
  EXPECT_EQ(Ended("abort"), 0);
  EXPECT_EQ(OfModel("vllm:time_to_first_token_seconds_count"), 4);
  EXPECT_EQ(OfModel("vllm:inter_token_latency_seconds_count"), 8);
  EXPECT_EQ(OfModel("vllm:request_generation_tokens_sum"), 12);
  EXPECT_EQ(OfModel("vllm:request_prompt_tokens_sum"), 40);
  EXPECT_EQ(OfModel("vllm:request_prefill_kv_computed_tokens_sum"), 24);
  EXPECT_EQ(OfModel("vllm:request_params_max_tokens_sum"), 200);
  EXPECT_EQ(OfModel("vllm:request_queue_time_seconds_sum"), 2);
  EXPECT_EQ(OfModel("vllm:request_prefill_time_seconds_sum"), 1);
  EXPECT_EQ(OfModel("vllm:request_params_n_count"), 2);
  EXPECT_EQ(OfModel("vllm:request_params_n_sum"), 4);
  EXPECT_EQ(OfModel("vllm:request_max_num_generation_tokens_sum"), 6);
  EXPECT_EQ(Value(R"(latte:ignored_fields_total{field="user"})"), 1);
  EXPECT_EQ(Value(R"(latte:ignored_fields_total{field="best_of"})"), 1);
  EXPECT_EQ(Value(R"(latte:ignored_fields_total{field="other"})"), 0);
}

TEST_F(ObserverTest, AClientThatLeavesAbortsItsAnswers) {
  Begin("r", 1, 2);
  Token("r", 1, 0, 1, FinishReason::kStop);
  Token("r", 1, 1, 5);
  observer_->Ended("r", {}, Error{Code::kCancelled, "the client left"});
  EXPECT_EQ(Ended("stop"), 1);
  EXPECT_EQ(Ended("abort"), 1);
  EXPECT_EQ(OfModel("vllm:e2e_request_latency_seconds_count"), 2);
  EXPECT_EQ(OfModel("vllm:request_generation_tokens_sum"), 6);
  const Json view = *Json::Parse(observer_->RequestsJson(), "view");
  EXPECT_EQ(*view.Get("finished")->At(0).GetString("result"), "cancelled");
  EXPECT_EQ(*view.GetInt("running"), 0);
}

TEST_F(ObserverTest, ErrorsBeforeAnyEventAreRefusals) {
  Begin("full");
  observer_->Ended("full", {}, Error{Code::kExhausted, "the queue is full"});
  const auto bad = observer_->Began("bad", ApiEndpoint::kChat, "");
  observer_->Refused("bad", Error{Code::kInvalidArgument, "bad"});
  Begin("late");
  Token("late", 1, 0, 1);
  observer_->Ended("late", {}, Error{Code::kInternal, "failed"});
  EXPECT_EQ(Value(R"(latte:requests_refused_total{reason="overloaded"})"), 1);
  EXPECT_EQ(Value(R"(latte:requests_refused_total{reason="invalid_request"})"), 1);
  EXPECT_EQ(Value(R"(latte:requests_refused_total{reason="internal"})"), 0);
  EXPECT_EQ(Ended("error"), 1);
  EXPECT_EQ(Json::Parse(observer_->RequestsJson(), "view")->Get("finished")->size(), 3U);
}

// Whatever ends it, or nothing.
TEST_F(ObserverTest, NothingOfAGenerationStaysListed) {
  const auto expect = [this](size_t count) { EXPECT_EQ(observer_->views(), count); };
  for (const char* id : {"done", "refused", "lost"}) Begin(id);
  expect(3);
  observer_->Ended("done", {}, std::nullopt);
  expect(2);
  observer_->Refused("refused", Error{Code::kInvalidArgument, "bad"});
  expect(1);
  listed_.clear();
  expect(0);
  EXPECT_EQ(Json::Parse(observer_->RequestsJson(), "view")->Get("finished")->size(), 2U);
}

TEST_F(ObserverTest, AnAnsweredRequestFreesItsId) {
  AnsweredRequest answered{.id = observer_->ids().Take("mine"), .method = "GET", .path = "/"};
  EXPECT_EQ(*answered.id, "mine");
  EXPECT_NE(*observer_->ids().Take("mine"), "mine");
  answered.outcome = {200, 1};
  observer_->Answered(answered);
  answered = {};
  EXPECT_EQ(*observer_->ids().Take("mine"), "mine");
  EXPECT_EQ(Value(R"(latte:http_responses_total{status="200"})"), 1);
}

TEST_F(ObserverTest, EventsOfUnknownRequestsAreIgnored) {
  Token("nothing", 1, 0, 1, FinishReason::kStop);
  observer_->Ended("nothing", {}, std::nullopt);
  EXPECT_EQ(Ended("stop"), 0);
}

TEST(Observer, RefusesUnknownLevels) {
  ServeOptions options;
  options.log_level = "loud";
  EXPECT_FALSE(Observer::Create(options, "tiny", "1"));
}

}  // namespace
}  // namespace latte::observer_test
