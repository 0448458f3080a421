// The engine drafts from the states of the whole text at once, whatever happened to the
// sequence: chunks, accepted drafts, prefixes, preemption, forks, steps without drafts.
#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/attention_mode.h"
#include "src/engine/core/engine_core.h"
#include "src/models/registry.h"
#include "tests/support/parameter_name.h"
#include "tests/support/step/single_steps.h"

namespace latte::mtp_drafter_test {
namespace {

constexpr int64_t kPageTokens = 16;

// A model that remembers what it drafted from: by position and the tokens that the layers
// took. Where the last of them is in one of `texts` there, the draft is the token after it.
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
    positions_.assign(step.positions.begin(), step.positions.end());
    tokens_.resize(step.tokens.size());
    for (size_t t = 0; t < step.tokens.size(); ++t) {
      if (run.layer == 0) tokens_[t].clear();
      tokens_[t].push_back(step.tokens[t]);
    }
    if (run.layer == 0 && run.input == DraftInput::kDraft) return;  // beyond the text's states
    for (size_t t = 0; t < step.tokens.size(); ++t) {
      const float* row = z.Row<float>(static_cast<int64_t>(t));
      found[{step.positions[t], tokens_[t]}].insert({row, row + z.shape[1]});
    }
  }
  void AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const override {
    model_->AppendDraftRows(step, run, h);
  }
  void DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                   const TensorView& logits) const override {
    model_->DraftLogits(step, layer, z, logits);
    for (size_t i = 0; i < positions_.size(); ++i) {
      const std::set<int32_t> next = Following(positions_[i] + layer + 1, tokens_[i].back());
      if (next.size() == 1) logits.Row<float>(static_cast<int64_t>(i))[*next.begin()] = 1e6f;
    }
  }

  // Different texts may have the same token at the same place.
  using Place = std::pair<int64_t, std::vector<int32_t>>;
  using States = std::map<Place, std::set<std::vector<float>>>;
  mutable States found;
  std::vector<std::vector<int32_t>> texts;

 private:
  // The tokens that follow `token` at place `at` of a text.
  std::set<int32_t> Following(int64_t at, int32_t token) const {
    std::set<int32_t> out;
    for (const std::vector<int32_t>& text : texts)
      if (at + 1 < std::ssize(text) && text[static_cast<size_t>(at)] == token)
        out.insert(text[static_cast<size_t>(at) + 1]);
    return out;
  }

  std::unique_ptr<Model> model_;
  mutable std::vector<int32_t> positions_;  // of the last drafts
  mutable std::vector<std::vector<int32_t>> tokens_;
};

// The parameter: the folder of a model.
class MtpDrafterTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto loaded = LoadModel(std::string(LATTE_SOURCE_DIR) + "/" + GetParam(), {.mtp = true});
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::make_unique<Recorder>(std::move(*loaded));
  }

  AttentionMode mode() const {
    return model_->config().indexer.heads > 0 ? AttentionMode::kSparse : AttentionMode::kAbsorbed;
  }

  std::unique_ptr<EngineCore> Make(const std::string& drafts, int64_t pages = 200) {
    EngineOptions o;
    o.page_tokens = kPageTokens;
    o.max_tokens = 256;
    o.max_sequences = 4;
    o.max_batch_tokens = 24;
    o.threads = 1;
    o.attention = Name(mode());
    o.dtype = "f32";
    o.draft_tokens = drafts;
    o.cache_bytes = int64_t{1} << 30;
    auto settings = ResolveOptions(o, model_->config(), machine_, {});
    EXPECT_TRUE(settings) << ToString(settings.error());
    settings->pages = pages;
    return std::move(*EngineCore::Create({model_.get(), &machine_, nullptr}, *settings));
  }

  std::vector<int32_t> Prompt(int64_t length, uint64_t seed = 0) const {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < length; ++i)
      out.push_back(static_cast<int32_t>(Mix64(seed * 1000 + static_cast<uint64_t>(i)) %
                                         static_cast<uint64_t>(model_->config().vocab)));
    return out;
  }

  // The texts of all answers, prompts included. Layers after the first run over drafts: these are
  // mostly right then.
  std::vector<std::vector<int32_t>> Run(EngineCore& engine,
                                        const std::vector<std::vector<int32_t>>& prompts, int n = 1,
                                        int64_t answer = 60) {
    if (model_->draft_layers() > 1) model_->texts = Answers(*Make("0"), prompts, n, answer);
    return Answers(engine, prompts, n, answer);
  }

  std::vector<std::vector<int32_t>> Answers(EngineCore& engine,
                                            const std::vector<std::vector<int32_t>>& prompts, int n,
                                            int64_t answer) {
    std::map<std::pair<RequestId, int>, std::vector<int32_t>> texts;
    engine.SetEventSink([&](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) {
        auto& text = texts[{e.request, e.choice}];
        if (text.empty()) text = prompts[static_cast<size_t>(e.user_data)];
        if (e.token) text.push_back(*e.token);
      }
    });
    for (size_t i = 0; i < prompts.size(); ++i) {
      Request r;
      r.tokens = prompts[i];
      r.user_data = i;
      r.n = n;
      r.sampling.temperature = n > 1 ? 1 : 0;
      r.stop.max_tokens = answer;
      r.stop.ignore_eos = true;
      EXPECT_TRUE(engine.Submit(r));
    }
    while (engine.WaitForWork(std::chrono::steady_clock::now())) EXPECT_TRUE(engine.Step());
    std::vector<std::vector<int32_t>> out;
    for (auto& [id, text] : texts) out.push_back(std::move(text));
    return out;
  }

  // The states of a text, computed in one go.
  void Expect(const std::vector<int32_t>& text, Recorder::States& out) {
    const Recorder::States engines = std::exchange(model_->found, {});
    const auto length = static_cast<int64_t>(text.size());
    std::vector<int32_t> pages;
    for (int32_t i = 0; i * kPageTokens < length; ++i) pages.push_back(i);
    const ModelConfig& config = model_->config();
    CacheSpec spec = CacheSpecFor(config, mode(), CacheDType::Plain(DType::kF32), kPageTokens);
    spec.layers += config.mtp_layers;
    LatentCache cache = *LatentCache::Create(spec, std::ssize(pages));
    ThreadPool threads(1);
    Workspace workspace;
    testing_support::SingleSteps steps({.model = model_.get(),
                                        .cache = &cache,
                                        .workspace = &workspace,
                                        .exec = {.threads = &threads, .machine = &machine_}},
                                       {DType::kF32, 4096, true, SparseFrom(config, mode())});
    const auto chunk = SequenceChunk::Of(text, 0, MlaPath::kAbsorbed, pages);
    steps.Forward({&chunk, 1});
    for (int64_t k = 1; k <= model_->draft_layers(); ++k) {
      const auto shifted = SequenceChunk::Of(std::span(text).subspan(static_cast<size_t>(k)), 0,
                                             MlaPath::kAbsorbed, pages);
      const DraftInput input = k == 1 ? DraftInput::kDecoder : DraftInput::kDraft;
      steps.Draft({&shifted, 1}, {k - 1, input});
    }
    for (const auto& [at, states] : std::exchange(model_->found, engines))
      out[at].insert(states.begin(), states.end());
  }

  // Every state of the engine is the expected one, and every text was drafted to its end; returns
  // the number of states. Layers after the first also run over drafts, which are not in a text
  // where they are wrong.
  int64_t Compare(const std::vector<std::vector<int32_t>>& texts) {
    Recorder::States expected;
    for (const auto& text : texts) Expect(text, expected);
    int64_t found = 0;
    for (const auto& [place, states] : model_->found) {
      const auto& [position, tokens] = place;
      if (tokens.size() > 1 && !expected.contains(place)) continue;
      ++found;
      for (const std::vector<float>& state : states)
        EXPECT_TRUE(expected[place].contains(state)) << "layer " << tokens.size() << ", position "
                                                     << position << ", token " << tokens.back();
    }
    for (const auto& text : texts) {
      const int64_t last = std::ssize(text) - 2;
      int64_t at = last;
      while (at > 0 && !model_->found.contains({at, {text[static_cast<size_t>(at) + 1]}})) --at;
      EXPECT_LE(last - at, 2 * kMostDrafts);
    }
    return found;
  }

  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Recorder> model_;
};

TEST_P(MtpDrafterTest, ChunksAndAcceptedDrafts) {
  // Drafts beyond the number of layers are made from states of no text.
  const bool one_layer = model_->draft_layers() == 1;
  for (const std::string drafts : {"1", one_layer ? "4" : "2"}) {
    model_->found.clear();
    const auto engine = Make(drafts);
    const auto texts = Run(*engine, {Prompt(50), Prompt(16, 1), Prompt(1, 2)});
    EXPECT_GT(Compare(texts), 60) << drafts;
    // The drafting layers of the others are random.
    if (GetParam() == std::string("models/tiny") || !one_layer) {
      EXPECT_GT(engine->Stats().accepted_tokens, 0) << drafts;
    }
  }
}

TEST_P(MtpDrafterTest, PrefixesOfPromptsAndOfAnswers) {
  const auto engine = Make("2");
  auto texts = Run(*engine, {Prompt(50)});
  model_->found.clear();
  // The answer and more: its pages hold rows that the drafter wrote while and after it ran.
  std::vector<int32_t> turn = texts.front();
  turn.resize(turn.size() - 4);
  const auto again = Run(*engine, {turn, Prompt(50)});
  EXPECT_GT(engine->Stats().cached_tokens, 96 + 32);
  EXPECT_GT(Compare(again), 30);
}

// The step that fills a page may be the last one: of an accepted run that goes beyond the page.
TEST_P(MtpDrafterTest, PagesThatTheLastStepFills) {
  const std::string drafts = model_->draft_layers() == 1 ? "4" : "2";
  const auto longer = Run(*Make(drafts), {Prompt(50)}).front();
  const int64_t first = 47 + model_->draft_layers();
  for (int64_t answer = first; answer < first + 4; ++answer) {
    const auto engine = Make(drafts);
    Run(*engine, {Prompt(50)}, 1, answer);
    model_->found.clear();
    const std::vector<int32_t> turn(longer.begin(), longer.begin() + 50 + answer);
    const auto again = Run(*engine, {turn}, 1, 20);
    EXPECT_EQ(engine->Stats().cached_tokens, 96) << answer;
    EXPECT_GT(Compare(again), 3) << answer;
  }
}

TEST_P(MtpDrafterTest, Preemption) {
  const auto engine = Make("2", 14);
  const auto texts = Run(*engine, {Prompt(50), Prompt(40, 1), Prompt(30, 2)});
  EXPECT_GT(engine->Stats().preemptions, 0);
  EXPECT_GT(Compare(texts), 60);
}

TEST_P(MtpDrafterTest, Forks) {
  for (const int64_t length : {40, 32, 31, 33}) {
    model_->found.clear();
    const auto engine = Make("2");
    const auto texts = Run(*engine, {Prompt(length)}, 3);
    ASSERT_EQ(texts.size(), 3u);
    EXPECT_GT(Compare(texts), 60) << length;
    EXPECT_EQ(engine->Stats().pages_used, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MtpDrafterTest,
                         testing::Values("models/tiny", "tests/goldens/v32_mtp",
                                         "tests/goldens/v3_mtp2", "tests/goldens/glm52_mtp"),
                         testing_support::LastPartOfPath);

}  // namespace
}  // namespace latte::mtp_drafter_test
