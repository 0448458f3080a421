// Requests that are spread over groups give the bytes of one engine alone, and their groups keep
// answering.
#include "src/engine/link/spread_engine.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/engine/link/dp_engine.h"
#include "tests/support/parameter_name.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/step/dp_world.h"

namespace latte::spread_engine_test {
namespace {

using testing_support::Answers;
using testing_support::Ask;
using testing_support::CollectiveTrace;
using testing_support::DpWorld;
using testing_support::Finish;
using testing_support::kWorld;
using testing_support::Listen;
using testing_support::Of;
using testing_support::TraceDifference;

// The communicator of ranks with one place in all groups.
constexpr const char* kAcross = "world.0.2";
constexpr int64_t kPageTokens = 16;

struct Case {
  const char* model;
  int ranks = 2;
  int groups = 2;
  bool whole_experts = false;
  const char* drafts = "0";
  const char* cache = "bf16";
  const char* attention = "auto";
  int64_t pages = 100;  // of each group

  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << fmt::format("{} on {} ranks, {} groups, drafts {}, {}, {}, pages {}{}", c.model,
                        c.ranks, c.groups, c.drafts, c.cache, c.attention, c.pages,
                        c.whole_experts ? ", whole experts" : "");
  }
};

class SpreadEngineTest : public testing::TestWithParam<Case> {
 protected:
  // For a group's engine, or for one engine alone with a cache for everything.
  Settings SettingsFor(const Model& model, const std::optional<RankShare>& share) const {
    const Case& c = GetParam();
    EngineOptions o;
    if (share) {
      o.tp = c.ranks;
      o.dp = c.groups;
      o.ep = c.whole_experts ? c.ranks : 1;
    }
    o.page_tokens = kPageTokens;
    o.max_tokens = 3400;
    o.max_sequences = 6;
    o.max_batch_tokens = 512;
    o.prefill_workspace_tokens = 1000;
    o.threads = 1;
    o.deterministic = deterministic_;
    o.dtype = dtype_;
    o.cache_dtype = c.cache;
    o.attention = c.attention;
    o.draft_tokens = c.drafts;
    o.cache_bytes = int64_t{64} << 20;
    o.cache_dir = share ? cache_dir_ : "";
    auto settings = ResolveOptions(o, model.config(), machine_, {}, share.value_or(RankShare()));
    EXPECT_TRUE(settings) << ToString(settings.error());
    if (!share) return *settings;
    settings->pages = pages_ > 0 ? pages_ : c.pages;
    settings->options.max_tokens = settings->pages * kPageTokens;
    settings->options.dp_spread_tokens = spread_tokens_;
    return *settings;
  }

  DpWorld World() const {
    const Case& c = GetParam();
    return {.model = std::string(c.model),
            .ranks = c.ranks,
            .groups = c.groups,
            .whole_experts = c.whole_experts,
            .mtp = std::string_view(c.drafts) != "0",
            .settings = [this](const Model& model, const RankShare& share) {
              return SettingsFor(model, share);
            }};
  }

  // Short requests, and longer ones than a group holds, one of them answered twice; they begin
  // alike.
  Answers AskAll(Engine& engine) const {
    Answers out;
    Listen(engine, out);
    uint64_t name = 0;
    for (const int64_t length : {5, 1700, 40, 2100, 1030, 2120}) {
      Request r = Ask(length, ++name, vocab_);
      r.n = length == 2120 ? 2 : 1;
      EXPECT_TRUE(engine.Submit(std::move(r)));
      if (length == 40) {
        EXPECT_TRUE(engine.Step());
      }
    }
    Finish(engine);
    return out;
  }

  Answers AskOne() {
    const DpWorld world = World();
    const auto model = world.Load(world.Wanted());
    vocab_ = model->config().vocab;
    const auto core =
        EngineCore::Create({.model = model.get(), .machine = &machine_}, SettingsFor(*model, {}));
    EXPECT_TRUE(core) << ToString(core.error());
    return AskAll(**core);
  }

  Machine machine_ = testing_support::MachineWithAvx2();
  std::string cache_dir_;
  const char* deterministic_ = "strict";
  const char* dtype_ = "bf16";
  int64_t pages_ = 0;  // of each group; 0: of the case
  int64_t spread_tokens_ = 0;
  int64_t vocab_ = 0;
};

TEST_P(SpreadEngineTest, AnswersAreTheBytesOfOneRank) {
  const Answers expected = AskOne();
  ASSERT_EQ(expected.size(), 7U);
  DpWorld world = World();
  world.Lead([&](DpEngine& engine) {
    EXPECT_EQ(AskAll(engine), expected);
    const EngineStats all = engine.Stats();
    EXPECT_EQ(all.pages_used, 0);
    EXPECT_EQ(all.requests_finished, 7);
    EXPECT_EQ(all.pages_total, GetParam().groups * GetParam().pages);
    EXPECT_GT(all.pages_cached, 0);
    EXPECT_GT(all.cached_tokens, 1600) << "the second long prompt begins as the first";
    int64_t generated = 0;
    for (const EngineStats& one : engine.GroupStats()) generated += one.generated_tokens;
    EXPECT_LT(generated, all.generated_tokens) << "nothing was spread";
    EXPECT_GT(generated, 0);
    if (std::string_view(GetParam().drafts) != "0") {
      EXPECT_GT(all.drafted_tokens, 0);
    }
  });
  for (const CollectiveTrace& trace : world.traces) {
    for (const char* comm : {kWorld, kAcross})
      EXPECT_EQ(TraceDifference(Of(world.traces.front(), comm), Of(trace, comm)), "") << comm;
    EXPECT_GT(Of(trace, kAcross).size(), 0U);
  }
}

constexpr Case kCases[] = {
    {"models/tiny"},
    {"models/tiny", 2, 2, true, "2", "int8"},
    {"models/tiny", 4, 2, true, "0", "fp8"},
    {"models/tiny", 4, 2, false, "0", "bf16", "absorbed"},
    {"models/tiny", 4, 4, true, "3", "bf16", "latent", 70},
    {"tests/goldens/v3_noaux", 2, 2, true},
};
INSTANTIATE_TEST_SUITE_P(Models, SpreadEngineTest, testing::ValuesIn(kCases),
                         testing_support::ParameterName());

// Merged in parallel, the last bits may differ.
class SpreadInParallelTest : public SpreadEngineTest {};
INSTANTIATE_TEST_SUITE_P(Models, SpreadInParallelTest,
                         testing::Values(Case{"models/tiny", 2, 2, true, "0", "f32"},
                                         Case{"models/tiny-sparse", 4, 2, true, "0", "f32"},
                                         Case{"tests/goldens/v2_lite", 2, 2, true, "0", "f32"}),
                         testing_support::ParameterName());

TEST_P(SpreadInParallelTest, AnswersAreNearlyTheSame) {
  deterministic_ = "on";
  dtype_ = "f32";
  const Answers expected = AskOne();
  DpWorld world = World();
  world.Lead([&](DpEngine& engine) {
    const Answers found = AskAll(engine);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [key, answer] : expected) {
      const auto& other = found.at(key);
      ASSERT_EQ(other.tokens, answer.tokens) << key.first;
      for (size_t i = 0; i < answer.logprobs.size(); ++i)
        EXPECT_NEAR(other.logprobs[i], answer.logprobs[i], 1e-4) << key.first;
    }
  });
}

using SpreadOverTinyTest = SpreadEngineTest;
INSTANTIATE_TEST_SUITE_P(Tiny, SpreadOverTinyTest, testing::Values(Case{"models/tiny", 2, 2, true}),
                         testing_support::ParameterName());

// All prompts are longer than a group's cache, and together longer than all caches: they wait for
// one another and for the requests of the groups. Afterwards the groups have their pages back.
TEST_P(SpreadOverTinyTest, PagesAreLentAndComeBack) {
  const auto ask = [this](Engine& engine) {
    Answers out;
    Listen(engine, out);
    for (uint64_t name = 1; name <= 10; ++name) {
      Request r = Ask(name % 3 == 0 ? 1800 : 200, name, vocab_);
      r.tokens.front() = static_cast<int32_t>(name);  // nothing in common
      EXPECT_TRUE(engine.Submit(std::move(r)));
    }
    Finish(engine);
    for (uint64_t name = 21; name <= 32; ++name) {
      Request r = Ask(700, name, vocab_);
      r.tokens.front() = static_cast<int32_t>(name);
      EXPECT_TRUE(engine.Submit(std::move(r)));
    }
    Finish(engine);
    return out;
  };
  const DpWorld alone = World();
  const auto model = alone.Load({});
  vocab_ = model->config().vocab;
  const auto core =
      EngineCore::Create({.model = model.get(), .machine = &machine_}, SettingsFor(*model, {}));
  const Answers expected = ask(**core);
  DpWorld world = World();
  world.Lead([&](DpEngine& engine) {
    EXPECT_EQ(ask(engine), expected);
    EXPECT_EQ(engine.Stats().pages_used, 0);
    // Each group has had two requests of 700 tokens at once: 90 of its 100 pages.
    for (const EngineStats& one : engine.GroupStats()) EXPECT_GE(one.pages_cached, 86);
  });
}

// A rank sends for a token: the results of all heads, then merged heads and rows of experts.
TEST_P(SpreadOverTinyTest, RowsAndBytesAreTheShareOfARank) {
  deterministic_ = "on";
  DpWorld world = World();
  const auto model = world.Load({});
  const MlaDims& dims = model->config().mla;
  const int64_t layers = model->config().layers;
  const int64_t experts = layers - model->config().moe.first_dense;
  const auto bytes_for = [&](int64_t answer) {
    world.Lead([&](DpEngine& engine) {
      Request r = Ask(2100, 1, 256);
      r.stop.max_tokens = answer;
      ASSERT_TRUE(engine.Submit(std::move(r)));
      for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine.Step());
      for (const EngineStats& one : engine.GroupStats())
        EXPECT_NEAR(one.pages_used * kPageTokens, 2100 / 2, kSplitKeys / 2 + 2 * kPageTokens);
      Finish(engine);
    });
    std::map<std::string, int64_t> out;
    for (const auto& one : Of(world.traces.front(), kAcross)) out[one.op] += one.bytes;
    return out;
  };
  const auto few = bytes_for(10);
  auto many = bytes_for(20);
  constexpr int64_t kTokens = 10;
  EXPECT_EQ(many["all_to_all"] - few.at("all_to_all"),
            kTokens * layers * dims.h * (dims.v + 1) * int64_t{sizeof(float)});
  EXPECT_EQ(many["all_gather"] - few.at("all_gather"),
            kTokens * (layers * dims.h * dims.v + experts * dims.d) * int64_t{sizeof(float)});
}

TEST_P(SpreadOverTinyTest, ARequestThatAllGroupsTogetherCannotHoldIsRefused) {
  World().Lead([&](DpEngine& engine) {
    vocab_ = 256;
    EXPECT_EQ(engine.options().max_tokens, (2 * 64 + 36) * kPageTokens);
    const auto refused = engine.Submit(Ask(2624, 1, 256));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    Answers answers;
    Listen(engine, answers);
    ASSERT_TRUE(engine.Submit(Ask(2623, 1, 256)));
    Finish(engine);
    EXPECT_EQ((answers[{1, 0}].tokens.size()), 1U);
    EXPECT_EQ((answers[{1, 0}].finish), FinishReason::kLength);
  });
}

// Two requests fit as long as their answers are short; the second one is preempted and computed
// again.
TEST_P(SpreadOverTinyTest, APreemptedRequestGivesTheSameAnswer) {
  pages_ = 140;
  spread_tokens_ = 1000;
  const auto ask = [](Engine& engine) {
    Answers out;
    Listen(engine, out);
    for (uint64_t name = 1; name <= 2; ++name) {
      Request r = Ask(2100, name, 256);
      r.tokens.front() = static_cast<int32_t>(name);
      r.stop.max_tokens = 120;
      EXPECT_TRUE(engine.Submit(std::move(r)));
    }
    Finish(engine);
    return out;
  };
  const auto model = World().Load({});
  const auto core =
      EngineCore::Create({.model = model.get(), .machine = &machine_}, SettingsFor(*model, {}));
  const Answers expected = ask(**core);
  World().Lead([&](DpEngine& engine) {
    EXPECT_EQ(ask(engine), expected);
    EXPECT_GT(engine.Stats().preemptions, 0);
    for (const EngineStats& one : engine.GroupStats()) EXPECT_EQ(one.generated_tokens, 0);
  });
}

TEST_P(SpreadOverTinyTest, ASpreadRequestThatIsCancelledEnds) {
  World().Lead([&](DpEngine& engine) {
    Answers answers;
    Listen(engine, answers);
    const auto first = engine.Submit(Ask(1800, 1, 256));
    const auto second = engine.Submit(Ask(1800, 2, 256));
    ASSERT_TRUE(first && second);
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(engine.Step());
    engine.Cancel(*first);
    Finish(engine);
    EXPECT_EQ((answers[{1, 0}].finish), FinishReason::kCancelled);
    EXPECT_EQ((answers[{2, 0}].finish), FinishReason::kLength);
    EXPECT_EQ(engine.Stats().pages_used, 0);
    EXPECT_EQ(engine.Stats().requests_cancelled, 1);
  });
}

TEST_P(SpreadOverTinyTest, PagesOfAllOwnersAreSavedAndFoundAgain) {
  const testing_support::ScratchDir folder;
  cache_dir_ = folder.path();
  Answers first;
  vocab_ = 256;
  World().Lead([&](DpEngine& engine) {
    first = AskAll(engine);
    EXPECT_TRUE(engine.SavePrefixes());
  });
  World().Lead([&](DpEngine& engine) {
    EXPECT_EQ(AskAll(engine), first);
    EXPECT_GT(engine.Stats().disk_tokens, 1600);
  });
}

}  // namespace
}  // namespace latte::spread_engine_test
