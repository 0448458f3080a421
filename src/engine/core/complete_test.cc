#include "src/engine/core/complete.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "src/engine/core/engine_core.h"
#include "src/models/registry.h"

namespace latte::complete_test {
namespace {

// A small checkpoint with random weights, and an engine for sequences of up to 40 computed tokens.
class CompleteTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = LoadModel(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v3_noaux");
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
  }
  std::unique_ptr<EngineCore> Make(const EngineOptions& options = {}) const {
    const auto settings = ResolveOptionsForOne(options, model_->config(), machine_, 40);
    EXPECT_TRUE(settings) << ToString(settings.error());
    return EngineCore::Create({model_.get(), &machine_, nullptr}, *settings).value();
  }
  Request Ask(int64_t max_tokens, double temperature = 0) const {
    Request request;
    request.tokens = prompt_;
    request.sampling.temperature = temperature;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_eos = true;
    return request;
  }

  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Model> model_;
  const std::vector<int32_t> prompt_ = {5, 9, 1, 30};
};

TEST_F(CompleteTest, StopsAtLengthStopTokenAndContextEnd) {
  const auto by_length = Complete(*Make(), Ask(6));
  ASSERT_TRUE(by_length) << ToString(by_length.error());
  EXPECT_EQ(by_length->tokens.size(), 6u);
  EXPECT_EQ(by_length->reason, FinishReason::kLength);
  EXPECT_GT(by_length->prompt_seconds, 0);
  EXPECT_GT(by_length->generate_seconds, 0);

  Request stops = Ask(6);
  stops.stop.tokens = {by_length->tokens[3]};
  const auto stopped = Complete(*Make(), stops);
  EXPECT_LE(stopped->tokens.size(), 3u);
  EXPECT_EQ(stopped->reason, FinishReason::kStop);

  stops.stop.min_tokens = 5;  // the stop token is not drawn before
  const auto put_off = Complete(*Make(), stops);
  EXPECT_GE(put_off->tokens.size(), 5u);
  EXPECT_EQ(std::ranges::count(put_off->tokens, by_length->tokens[3]), 0);

  const auto full = Complete(*Make(), Ask(1000));
  EXPECT_EQ(full->tokens.size(), 40u - prompt_.size() + 1);  // the last one is not computed
  EXPECT_EQ(full->reason, FinishReason::kLength);
}

TEST_F(CompleteTest, SameSeedSameTokensOnEveryThreadCountAndChunk) {
  Request request = Ask(20, 1);
  request.sampling.seed = 11;
  const auto expected = Complete(*Make(), request)->tokens;
  for (const int threads : {1, 2, 3})
    for (const int64_t chunk : {2, 3, 512}) {
      EngineOptions options;
      options.threads = threads;
      options.max_sequences = 1;
      options.max_batch_tokens = chunk;
      EXPECT_EQ(Complete(*Make(options), request)->tokens, expected);
    }
  request.sampling.seed = 12;
  EXPECT_NE(Complete(*Make(), request)->tokens, expected);
}

TEST_F(CompleteTest, CallsBackAfterEveryStepAndEndsOnRequest) {
  EngineOptions options;
  options.max_sequences = 1;
  options.max_batch_tokens = 2;
  const auto core = Make(options);
  std::vector<int32_t> tokens;
  int pieces = 0;
  const auto cut = Complete(*core, Ask(20), [&](const TokenEvent* event) {
    if (event == nullptr) ++pieces;
    if (event != nullptr && event->token) tokens.push_back(*event->token);
    return tokens.size() < 3;
  });
  ASSERT_TRUE(cut) << ToString(cut.error());
  EXPECT_EQ(pieces, 1);  // the first two tokens of the prompt; the last two draw
  EXPECT_EQ(cut->reason, FinishReason::kCancelled);
  EXPECT_EQ(cut->tokens, tokens);
  EXPECT_EQ(tokens.size(), 3u);
  EXPECT_EQ(Complete(*core, Ask(3))->tokens, tokens);  // the engine serves the next request

  const auto nothing = Complete(*core, Ask(20), [](const TokenEvent*) { return false; });
  EXPECT_EQ(nothing->reason, FinishReason::kCancelled);
  EXPECT_TRUE(nothing->tokens.empty());
  EXPECT_EQ(core->Stats().pages_used, 0);
}

// Its logits are no numbers.
class NanModel : public Model {
 public:
  explicit NanModel(ModelConfig config) : config_(std::move(config)) {}
  const ModelConfig& config() const override { return config_; }
  void Forward(StepContext&, const TensorView& h) const override {
    std::fill_n(h.Ptr<float>(), h.elements(), 0.0F);
  }
  void Logits(StepContext&, const TensorView&, const TensorView& logits) const override {
    std::fill_n(logits.Ptr<float>(), logits.elements(), NAN);
  }

 private:
  ModelConfig config_;
};

TEST_F(CompleteTest, GivesTheRequestsError) {
  Request longer = Ask(4);
  longer.tokens.assign(41, 3);
  EXPECT_EQ(Complete(*Make(), longer).error().code, Code::kInvalidArgument);
  model_ = std::make_unique<NanModel>(model_->config());
  const auto refused = Complete(*Make(), Ask(4));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kCorrupt);
}

// A conversation that grows takes up its whole pages again, in a cache that holds one sequence.
TEST_F(CompleteTest, ReusesWholePages) {
  EngineOptions options;
  options.page_tokens = 16;
  options.deterministic = "strict";
  const auto core = Make(options);
  Request request = Ask(1);
  request.tokens.assign(36, 3);
  EXPECT_EQ(Complete(*core, request)->cached_tokens, 0);
  const auto again = Complete(*core, request);
  EXPECT_EQ(again->cached_tokens, 32);
  options.prefix_cache = false;
  EXPECT_EQ(Complete(*Make(options), request)->tokens, again->tokens);
}

}  // namespace
}  // namespace latte::complete_test
