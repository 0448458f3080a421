// Drafts change no byte of an answer, only the number of steps.
#include <array>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/core/engine_core.h"
#include "src/models/registry.h"
#include "tests/support/parameter_name.h"
#include "tests/support/scratch_dir.h"

namespace latte::speculation_test {
namespace {

constexpr int64_t kPageTokens = 16;
constexpr int64_t kAnswer = 40;

// Tokens and the bits of their logprobs.
struct Bytes {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Bytes&) const = default;
};

struct Cell {
  std::string drafts = "0";
  int64_t chunk = 4096;  // new tokens per step
  int threads = 2;
  bool preempted = false;
  std::string attention = "auto";
  std::string level = "on";
  std::string dtype = "bf16";
  std::string cache = "";
  int64_t sequences = 8;
  std::string drafter = "mtp";
  std::string dir = "";  // of prefixes
};

std::string Name(const Cell& c) {
  return fmt::format(
      "{} drafts by {}, chunk {}, {} threads{}, {}, {}, {}, cache '{}', {} sequences", c.drafts,
      c.drafter, c.chunk, c.threads, c.preempted ? ", preempted" : "", c.attention, c.level,
      c.dtype, c.cache, c.sequences);
}

class SpeculationTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto loaded =
        LoadModel(std::string(LATTE_SOURCE_DIR) + "/" + GetParam(), ModelOptions{.mtp = true});
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    model_ = std::move(*loaded);
    for (const int64_t length : {3, 16, 17, 40, 64, 100})
      requests_.push_back(Ask(length, length % 2 == 0 ? 0 : 0.8));
  }

  Request Ask(int64_t length, double temperature) const {
    Request r;
    for (int64_t i = 0; i < length; ++i)
      r.tokens.push_back(static_cast<int32_t>(Mix64(static_cast<uint64_t>(length * 1000 + i)) %
                                              static_cast<uint64_t>(model_->config().vocab)));
    r.sampling.temperature = temperature;
    r.sampling.seed = static_cast<uint64_t>(length);
    r.stop.max_tokens = kAnswer;
    r.stop.ignore_eos = true;
    r.logprobs = 0;
    return r;
  }

  std::unique_ptr<EngineCore> Make(const Cell& cell) {
    EngineOptions o;
    o.page_tokens = kPageTokens;
    o.max_tokens = 256;
    o.max_sequences = cell.sequences;
    o.max_batch_tokens = cell.chunk;
    o.threads = cell.threads;
    o.attention = cell.attention;
    o.deterministic = cell.level;
    o.dtype = cell.dtype;
    o.cache_dtype = cell.cache;
    o.draft_tokens = cell.drafts;
    o.drafter = cell.drafter;
    o.cache_dir = cell.dir;
    o.cache_bytes = int64_t{1} << 30;
    auto settings = ResolveOptions(o, model_->config(), machine_, {});
    EXPECT_TRUE(settings) << ToString(settings.error());
    if (!settings) return nullptr;
    settings->pages = cell.preempted ? 12 : 200;
    return std::move(*EngineCore::Create({model_.get(), &machine_, nullptr}, *settings));
  }

  std::vector<Bytes> Run(EngineCore& engine) {
    std::map<std::pair<RequestId, int>, Bytes> out;
    engine.SetEventSink([&](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) {
        EXPECT_NE(e.finish, FinishReason::kError) << e.error.message;
        if (!e.token) continue;
        Bytes& bytes = out[{e.request, e.choice}];
        bytes.tokens.push_back(*e.token);
        bytes.logprobs.push_back(e.logprobs->chosen.logprob);
        EXPECT_EQ(e.generated_tokens, std::ssize(bytes.tokens));
      }
    });
    for (const Request& r : requests_) EXPECT_TRUE(engine.Submit(r));
    // While pages are read from disk there may be nothing else to do.
    while (engine.WaitForWork(std::chrono::steady_clock::now()) || engine.Stats().running > 0) {
      const Status step = engine.Step();
      if (!step) {
        ADD_FAILURE() << ToString(step.error());
        break;
      }
    }
    EXPECT_EQ(engine.Stats().pages_used, 0);
    std::vector<Bytes> in_order;
    for (auto& [id, bytes] : out) in_order.push_back(std::move(bytes));
    return in_order;
  }

  std::vector<Bytes> Run(const Cell& cell) { return Run(*Make(cell)); }

  void ExpectSame(const std::vector<Bytes>& got, const std::vector<Bytes>& expected,
                  const std::string& what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i] == expected[i]) << what << ", request " << i;
  }

  Machine machine_ = *Machine::Detect();
  std::unique_ptr<Model> model_;
  std::vector<Request> requests_;
};

TEST_P(SpeculationTest, SameBytesWithDrafts) {
  const std::vector<Bytes> expected = Run(Cell{});
  ASSERT_EQ(expected.size(), requests_.size());
  for (const Bytes& b : expected) ASSERT_EQ(std::ssize(b.tokens), kAnswer);
  for (const std::string drafts : {"1", "2", "4"})
    for (const int64_t chunk : {16, 64, 4096})
      for (const bool preempted : {false, true}) {
        const Cell cell{.drafts = drafts, .chunk = chunk, .preempted = preempted};
        const auto engine = Make(cell);
        ExpectSame(Run(*engine), expected, Name(cell));
        const EngineStats stats = engine->Stats();
        EXPECT_GT(stats.drafted_tokens, 0) << Name(cell);
        EXPECT_LE(stats.accepted_tokens, stats.drafted_tokens) << Name(cell);
        EXPECT_EQ(stats.preemptions > 0, preempted) << Name(cell);
      }
}

TEST_P(SpeculationTest, SameBytesOfEveryKindOfRow) {
  const Cell cells[] = {
      {.attention = "absorbed", .dtype = "f32"},
      {.attention = "latent"},
      {.attention = "decompressed", .dtype = "f16"},
      {.level = "strict", .cache = "int8"},
      {.level = "off", .cache = "fp8"},
      {.attention = "absorbed", .cache = "q6"},
  };
  for (Cell cell : cells) {
    const std::vector<Bytes> expected = Run(cell);
    cell.drafts = std::string("3");
    ExpectSame(Run(cell), expected, Name(cell));
  }
}

TEST_P(SpeculationTest, OneSequenceAtATime) {
  const std::vector<Bytes> expected = Run(Cell{});
  for (const std::string drafts : {"0", "1", "4"}) {
    const Cell cell{.drafts = drafts, .threads = 1, .sequences = 1};
    ExpectSame(Run(cell), expected, Name(cell));
  }
}

TEST_P(SpeculationTest, ForksOfAPrompt) {
  requests_.resize(4);
  for (Request& r : requests_) r.n = 3;
  const std::vector<Bytes> expected = Run(Cell{});
  ExpectSame(Run(Cell{.drafts = "2"}), expected, "2 drafts");
  ExpectSame(Run(Cell{.drafts = "4", .chunk = 32}), expected, "4 drafts, chunks of 32");
}

TEST_P(SpeculationTest, EverySamplingParameter) {
  for (Request& r : requests_) {
    r.sampling = {.temperature = 1.1,
                  .top_k = 40,
                  .top_p = 0.95,
                  .min_p = 0.01,
                  .repetition_penalty = 1.2,
                  .presence_penalty = 0.5,
                  .frequency_penalty = 0.3,
                  .logit_bias = {{5, 4.0f}, {9, -100.0f}, {12, 3.0f}},
                  .seed = r.sampling.seed};
    r.logprobs = 5;
  }
  const std::vector<Bytes> expected = Run(Cell{});
  ExpectSame(Run(Cell{.drafts = "4"}), expected, "4 drafts");
}

// Under strict determinism prefixes give the same bytes too: of the same engine, and those on disk.
TEST_P(SpeculationTest, RandomCells) {
  Random random(1);
  const auto one_of = [&](auto... choices) {
    const std::array all = {choices...};
    return all[random.Below(all.size())];
  };
  std::map<std::array<std::string, 3>, std::vector<Bytes>> plain;
  EngineStats total;
  for (int i = 0; i < 12; ++i) {
    const testing_support::ScratchDir dir;
    Cell cell;
    cell.drafts = one_of("1", "2", "3", "4", "auto");
    cell.drafter = one_of("mtp", "mtp", "lookup");
    cell.chunk = one_of(16, 24, 64, 4096);
    cell.threads = one_of(1, 2, 3);
    cell.preempted = one_of(false, true);
    cell.level = one_of("on", "strict");
    cell.dtype = one_of("bf16", "f32");
    cell.cache = one_of("", "fp8", "int8", "q6");
    const bool strict = cell.level == "strict";
    if (strict) cell.dir = dir.path();
    auto [expected, added] = plain.try_emplace({cell.level, cell.dtype, cell.cache});
    if (added)
      expected->second = Run(Cell{.level = cell.level, .dtype = cell.dtype, .cache = cell.cache});
    for (int engines = 0; engines < (strict ? 2 : 1); ++engines) {
      const auto engine = Make(cell);
      ExpectSame(Run(*engine), expected->second, Name(cell));
      if (strict) {
        ExpectSame(Run(*engine), expected->second, Name(cell) + ", again");
        EXPECT_TRUE(engine->SavePrefixes());
      }
      const EngineStats stats = engine->Stats();
      total.drafted_tokens += stats.drafted_tokens;
      total.preemptions += stats.preemptions;
      total.cached_tokens += stats.cached_tokens;
      total.disk_tokens += stats.disk_tokens;
    }
  }
  EXPECT_GT(total.drafted_tokens, 0);
  EXPECT_GT(total.preemptions, 0);
  EXPECT_GT(total.cached_tokens, 0);
  EXPECT_GT(total.disk_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, SpeculationTest,
                         testing::Values("models/tiny", "tests/goldens/v3_noaux",
                                         "tests/goldens/v3_mtp2", "tests/goldens/v32_mtp",
                                         "tests/goldens/glm52_mtp"),
                         testing_support::LastPartOfPath);

}  // namespace
}  // namespace latte::speculation_test
