// After short texts the engine drafts the tokens that tests/goldens/reference.py drafts.
#include <algorithm>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/checkpoint/model_path.h"
#include "src/engine/core/engine_core.h"
#include "src/models/registry.h"
#include "tests/support/parameter_name.h"

namespace latte::golden_drafts_test {
namespace {

// A model that remembers the likeliest tokens of drafts.
class Recorder final : public Model {
 public:
  explicit Recorder(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  const ModelConfig& config() const override { return model_->config(); }
  void Forward(StepContext& step, const TensorView& h) const override { model_->Forward(step, h); }
  void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const override {
    model_->Logits(step, h, logits);
  }
  int64_t draft_layers() const override { return model_->draft_layers(); }
  void Draft(StepContext& step, DraftRun run, const TensorView& h,
             const TensorView& z) const override {
    model_->Draft(step, run, h, z);
  }
  void AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const override {
    model_->AppendDraftRows(step, run, h);
  }
  void DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                   const TensorView& logits) const override {
    model_->DraftLogits(step, layer, z, logits);
    for (int64_t i = 0; i < logits.shape[0]; ++i) {
      const float* const row = logits.Row<float>(i);
      found.push_back(static_cast<int64_t>(std::max_element(row, row + logits.shape[1]) - row));
    }
  }

  mutable std::vector<int64_t> found;

 private:
  std::unique_ptr<Model> model_;
};

std::vector<int64_t> Ints(const Json& list) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < list.size(); ++i) out.push_back(*list.At(i).AsInt());
  return out;
}

Json ReadJson(const std::string& path) { return *Json::Parse(*ReadFile(path, 1 << 20), path); }

class GoldenDraftsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto loaded = LoadModel(*ResolveModelPath(dir_), {.mtp = true});
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::make_unique<Recorder>(std::move(*loaded));
    EngineOptions o;
    o.page_tokens = 16;
    o.max_tokens = 64;
    o.max_sequences = 2;
    o.threads = 1;
    o.dtype = "f32";
    o.prefix_cache = false;
    o.cache_bytes = 1 << 24;
    o.draft_tokens = "4";
    const auto settings = ResolveOptions(o, model_->config(), machine_, {});
    ASSERT_TRUE(settings) << ToString(settings.error());
    engine_ = std::move(*EngineCore::Create({model_.get(), &machine_, nullptr}, *settings));
  }

  // The tokens of a greedy answer to a prompt.
  std::vector<int64_t> Answer(std::span<const int64_t> prompt, int64_t count) {
    std::vector<int64_t> out;
    engine_->SetEventSink([&](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events)
        if (e.token) out.push_back(*e.token);
    });
    Request r;
    r.tokens.assign(prompt.begin(), prompt.end());
    r.sampling.temperature = 0;
    r.stop.max_tokens = count;
    r.stop.ignore_eos = true;
    EXPECT_TRUE(engine_->Submit(r));
    while (engine_->WaitForWork(std::chrono::steady_clock::now())) EXPECT_TRUE(engine_->Step());
    return out;
  }

  const std::string dir_ = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + GetParam();
  const Machine machine_ = *Machine::Detect();
  std::unique_ptr<Recorder> model_;
  std::unique_ptr<EngineCore> engine_;
};

TEST_P(GoldenDraftsTest, FourDraftsAfterTheFirstToken) {
  const std::vector<int64_t> tokens = Ints(ReadJson(dir_ + "/tokens.json"));
  const Json golden = ReadJson(dir_ + "/drafts.json");
  ASSERT_GT(golden.size(), 10u);
  for (size_t i = 0; i < golden.size(); ++i) {
    const Json& one = golden.At(i);
    const auto length = static_cast<size_t>(*one.Find("text")->AsInt());
    model_->found.clear();
    const auto answer = Answer(std::span(tokens).first(length), 8);
    EXPECT_EQ(answer.front(), *one.Find("next")->AsInt()) << length;
    ASSERT_GE(model_->found.size(), 4u);
    model_->found.resize(4);
    EXPECT_EQ(model_->found, Ints(*one.Find("drafts"))) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenDraftsTest,
                         testing::Values("v3_noaux", "v32_mtp", "v3_mtp2", "glm52_mtp", "gguf_v32",
                                         "gguf_glm52"),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::golden_drafts_test
