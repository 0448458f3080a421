#include "lab/eval/eval.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/models/registry.h"

namespace latte::eval_test {
namespace {

// A story of tiny's grammar, with the opening that eval uses.
const std::string kStory =
    "Once upon a time, a shy fox named Tom lived on a small farm. One day, he found a bean in the "
    "garden. He put it into a red pot and gave it water every day. But nothing came up, and Tom "
    "was "
    "sad. \"Be patient,\" said Mia the duck. \"The bean is only sleeping.\" So Tom waited one "
    "week. "
    "Then a tiny green leaf came out of the pot! It grew and grew until it was a tall bean plant. "
    "\"You were right, Mia,\" said Tom. He was glad. From that day on, Tom and Mia were best "
    "friends.";

// A scripted model: it knows every sum, keys up to `memory` tokens away, and one story. Its
// sequences share one array, so it serves one sequence at a time.
class ScriptedModel : public Model {
 public:
  ScriptedModel(ModelConfig config, Tokenizer tokenizer)
      : config_(std::move(config)), tokenizer_(std::move(tokenizer)) {}

  size_t memory = SIZE_MAX;
  std::string after_answer = ".";
  std::string story = kStory;
  bool ends = true;  // false: writes tokens without text after its script

  const ModelConfig& config() const override { return config_; }

  void Forward(StepContext& step, const TensorView& h) const override {
    for (int64_t i = 0; i < step.token_count(); ++i) {
      const auto row = static_cast<size_t>(i);
      tokens_.resize(static_cast<size_t>(step.positions[row]));
      tokens_.push_back(step.tokens[row]);
      *h.Row<float>(i) = static_cast<float>(step.positions[row]);
    }
  }

  void Logits(StepContext&, const TensorView& h, const TensorView& logits) const override {
    for (int64_t m = 0; m < h.shape[0]; ++m) {
      float* row = logits.Row<float>(m);
      std::fill_n(row, config_.vocab, -std::numeric_limits<float>::infinity());
      const auto seen = static_cast<size_t>(*h.Row<float>(m)) + 1;
      row[Next(std::span(tokens_).subspan(0, seen))] = 0;
    }
  }

 private:
  int32_t Next(std::span<const int32_t> tokens) const {
    std::string text;
    for (const int32_t token : tokens)
      if (token != config_.bos) text += tokenizer_.TokenBytes(token);
    const std::string rest = Rest(text, tokens.size());
    if (!rest.empty()) return tokenizer_.Encode(rest)->front();
    return static_cast<int32_t>(ends ? config_.eos[0] : config_.vocab - 1);
  }

  // The text that this model writes after `text`.
  std::string Rest(const std::string& text, size_t tokens) const {
    if (text.starts_with("Once")) return story.substr(std::min(text.size(), story.size()));
    if (const size_t equals = text.rfind('='); equals != std::string::npos) {
      int a = 0, b = 0;
      std::sscanf(text.c_str() + text.rfind(' ', equals) + 1, "%d+%d=", &a, &b);
      return (std::to_string(a + b) + after_answer).substr(text.size() - equals - 1);
    }
    const std::string question = text.substr(text.rfind("The key of "));
    const size_t is = question.find(" is") + 3;
    const size_t told = text.find(question.substr(0, is));
    const std::string key = tokens < memory ? text.substr(told + is + 1, 4) : "none";
    return (" " + key + after_answer).substr(question.size() - is);
  }

  ModelConfig config_;
  Tokenizer tokenizer_;
  mutable std::vector<int32_t> tokens_;
};

class EvalTest : public testing::Test {
 protected:
  Result<std::vector<SkillReport>> Run(const Model& model, const EvalOptions& options) const {
    return Evaluate({model, device_, tokenizer_, grammar_}, options);
  }
  // The single report.
  SkillReport One(const Model& model, const EvalOptions& options) const {
    auto reports = Run(model, options);
    EXPECT_TRUE(reports) << ToString(reports.error());
    EXPECT_EQ(reports->size(), 1u);
    return std::move(reports->front());
  }

  const std::string dir_ = std::string(LATTE_SOURCE_DIR) + "/models/tiny";
  const ComputeDevice device_ = *ComputeDevice::Open("cpu");
  const Tokenizer tokenizer_ = *Tokenizer::Load(dir_);
  const StoryGrammar grammar_ = *StoryGrammar::Load(dir_ + "/story_grammar.json");
  ScriptedModel scripted_{*LoadModelConfig(dir_), tokenizer_};
  const EngineOptions one_thread_ = {.threads = 1};
};

TEST_F(EvalTest, RightAnswersPassInEveryBucket) {
  const auto reports = Run(
      scripted_, {.skills = {"addition", "recall", "recall4"}, .count = 3, .engine = one_thread_});
  ASSERT_TRUE(reports) << ToString(reports.error());
  ASSERT_EQ(reports->size(), 3u);
  EXPECT_EQ((*reports)[0].total.name, "recall");  // in the order of EvalSkills, not of the request
  for (const SkillReport& report : *reports) {
    EXPECT_EQ(report.total.passed, report.total.count) << report.total.name;
    const bool recall = report.total.name != "addition";
    EXPECT_EQ(report.total.count, recall ? 15 : 3);
    ASSERT_EQ(report.buckets.size(), recall ? 5u : 0u);
    for (const EvalTally& bucket : report.buckets) EXPECT_EQ(bucket.passed, 3) << bucket.name;
  }
}

TEST_F(EvalTest, BucketsShowHowFarBackAKeyIsFound) {
  scripted_.memory = 1100;
  const SkillReport report =
      One(scripted_, {.skills = {"recall"}, .count = 2, .engine = one_thread_});
  EXPECT_EQ(report.total.passed, 6);
  std::vector<std::string> found;
  for (const EvalTally& bucket : report.buckets)
    found.push_back(bucket.name + ":" + std::to_string(bucket.passed));
  EXPECT_EQ(found, (std::vector<std::string>{"250:2", "500:2", "1000:2", "1500:0", "2000:0"}));
}

TEST_F(EvalTest, AnAnswerMustEndWithItsFullStop) {
  for (const std::string after : {"5.", "", " ", "\n."}) {
    scripted_.after_answer = after;
    EXPECT_EQ(
        One(scripted_, {.skills = {"addition"}, .count = 5, .engine = one_thread_}).total.passed, 0)
        << after;
  }
  scripted_.after_answer = ". 1+1=2.";
  EXPECT_EQ(
      One(scripted_, {.skills = {"addition"}, .count = 5, .engine = one_thread_}).total.passed, 5);
}

TEST_F(EvalTest, AStoryMustEndAndObeyTheGrammar) {
  const EvalOptions options = {.skills = {"stories"}, .count = 2, .engine = one_thread_};
  EXPECT_EQ(One(scripted_, options).total.passed, 2);
  scripted_.story = kStory.substr(0, kStory.size() - 1);
  EXPECT_EQ(One(scripted_, options).total.passed, 0);
  scripted_.story = kStory;
  scripted_.ends = false;
  EXPECT_EQ(One(scripted_, options).total.passed, 0);
}

TEST_F(EvalTest, ThreadsChangeNothingAndSeedsCountOn) {
  const auto model = LoadModel(dir_);
  ASSERT_TRUE(model) << ToString(model.error());
  EvalOptions options = {.skills = {"stories", "loss"}, .count = 4, .engine = one_thread_};
  const auto one = Run(**model, options);
  options.engine.threads = 3;
  const auto three = Run(**model, options);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(Dump(EvalJson(*one, 1)), Dump(EvalJson(*three, 1)));
  // Samples 1 to 4 equal samples 1 and 2 followed by 3 and 4.
  options = {.skills = {"stories"}, .count = 2};
  const int64_t first = One(**model, options).tokens;
  options.seed = 3;
  const int64_t second = One(**model, options).tokens;
  EXPECT_NE(first, second);
  EXPECT_EQ(first + second, one->front().tokens);
}

TEST_F(EvalTest, LossIsTheMeanOverPredictedTokens) {
  const auto model = LoadModel(dir_);
  ASSERT_TRUE(model) << ToString(model.error());
  const SkillReport report = One(**model, {.skills = {"loss"}, .count = 4});
  EXPECT_EQ(report.total.items, 4);
  EXPECT_EQ(report.total.count, report.tokens - 4);  // the first token of a story is not predicted
  ASSERT_TRUE(report.nats);
  // The choices in a story hold about 0.33 nats per token: the loss of a model that knows the
  // grammar.
  EXPECT_GT(*report.nats / static_cast<double>(report.total.count), 0.2);
  EXPECT_LT(*report.nats / static_cast<double>(report.total.count), 0.5);
}

TEST_F(EvalTest, BadRequestsAreRefusedByName) {
  const auto message = [&](const EvalOptions& options) {
    const auto reports = Run(scripted_, options);
    EXPECT_FALSE(reports);
    EXPECT_EQ(reports.error().code, Code::kInvalidArgument);
    return reports.error().message;
  };
  EXPECT_NE(message({.skills = {"stories", "chess"}}).find("'chess'"), std::string::npos);
  EXPECT_NE(message({.skills = {"chess"}}).find("recall4"), std::string::npos);
  EXPECT_NE(message({.count = 0}).find("--count"), std::string::npos);
  EXPECT_NE(message({.count = 1'000'001}).find("1000001"), std::string::npos);
  EXPECT_NE(message({.engine = {.threads = -1}}).find("threads"), std::string::npos);

  ModelConfig small = *LoadModelConfig(dir_);
  small.max_position = 400;
  const ScriptedModel short_sighted(small, tokenizer_);
  const auto reports =
      Run(short_sighted, {.skills = {"recall"}, .count = 1, .engine = one_thread_});
  ASSERT_FALSE(reports);
  EXPECT_NE(reports.error().message.find("eval recall"), std::string::npos);
  EXPECT_NE(reports.error().message.find("400"), std::string::npos);
}

TEST_F(EvalTest, ProgressCountsEveryItem) {
  std::vector<int64_t> seen;
  const auto reports = Evaluate({scripted_, device_, tokenizer_, grammar_},
                                {.skills = {"addition"}, .count = 3, .engine = one_thread_},
                                [&](int64_t done, int64_t items, std::string_view skill) {
                                  EXPECT_EQ(skill, "addition");
                                  EXPECT_EQ(items, 3);
                                  seen.push_back(done);
                                });
  ASSERT_TRUE(reports);
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 2, 3}));
}

TEST(EvalReport, JsonAndTable) {
  SkillReport recall;
  recall.total = {"recall", 8, 6, 8};
  recall.buckets = {{"250", 4, 4, 4}, {"500", 4, 2, 4}};
  recall.tokens = 3000;
  recall.what = "a key";
  SkillReport loss;
  loss.total = {"loss", 2, 0, 250};
  loss.nats = 100.0;
  loss.tokens = 252;
  loss.what = "cross-entropy";
  EXPECT_EQ(Dump(EvalJson({recall, loss}, 7)),
            R"({"recall":{"items":8,"passed":6,"count":8,"share":0.75,"seed":7,"tokens":3000,)"
            R"("buckets":[{"name":"250","items":4,"passed":4,"count":4,"share":1.0},)"
            R"({"name":"500","items":4,"passed":2,"count":4,"share":0.5}]},)"
            R"("loss":{"items":2,"count":250,"nats_per_token":0.4,"seed":7,"tokens":252}})");
  EXPECT_EQ(EvalTable({recall, loss}),
            "recall          6 of 8       75.0 %  a key\n"
            "  250           4 of 4      100.0 %\n"
            "  500           2 of 4       50.0 %\n"
            "loss           0.4000 nats/token     cross-entropy\n");
}

}  // namespace
}  // namespace latte::eval_test
