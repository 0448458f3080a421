// Engines of groups of ranks give the answers of one engine alone, and make the same collectives.
#include "src/engine/link/dp_engine.h"

#include <atomic>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/parameter_name.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/step/dp_world.h"

namespace latte::dp_engine_test {
namespace {

using testing_support::Answers;
using testing_support::Ask;
using testing_support::CollectiveTrace;
using testing_support::DpWorld;
using testing_support::Finish;
using testing_support::kLeaders;
using testing_support::kWorld;
using testing_support::Listen;
using testing_support::Of;
using testing_support::RunRanks;
using testing_support::TraceDifference;

struct Case {
  const char* model;
  int ranks = 2;
  int groups = 2;
  bool whole_experts = false;
  const char* drafts = "0";
  const char* cache = "bf16";
  const char* exchange = "auto";
  const char* policy = "balanced";
  int64_t pages = 0;  // of each group; 0: enough

  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << fmt::format("{} on {} ranks, {} groups, drafts {}, {}, {}, {}, pages {}{}", c.model,
                        c.ranks, c.groups, c.drafts, c.cache, c.exchange, c.policy, c.pages,
                        c.whole_experts ? ", whole experts" : "");
  }
};

// Prompts of several lengths, which begin alike; one is answered twice; some come later.
Answers AskAll(Engine& engine, int64_t vocab) {
  Answers out;
  Listen(engine, out);
  uint64_t name = 0;
  for (const int64_t length : {3, 17, 40, 70, 100, 100, 5}) {
    Request r = Ask(length, ++name, vocab);
    r.n = length == 40 ? 2 : 1;
    EXPECT_TRUE(engine.Submit(std::move(r)));
    if (name % 3 == 0) {
      EXPECT_TRUE(engine.Step());
    }
  }
  Finish(engine);
  EXPECT_TRUE(engine.Submit(Ask(60, ++name, vocab)));  // the other groups are idle
  Finish(engine);
  return out;
}

class DpEngineTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Model> Load(const ModelOptions& options) const {
    auto loaded = LoadModel(fmt::format("{}/{}", LATTE_SOURCE_DIR, GetParam().model), options);
    EXPECT_TRUE(loaded) << ToString(loaded.error());
    return loaded ? std::move(*loaded) : nullptr;
  }
  ModelOptions Wanted() const { return {.mtp = std::string_view(GetParam().drafts) != "0"}; }

  // Settings for the engine of one group; without a share, for one engine alone.
  Settings SettingsFor(const Model& model, const std::optional<RankShare>& share = {}) const {
    EngineOptions o;
    if (share) {
      o.tp = GetParam().ranks;
      o.dp = GetParam().groups;
      o.ep = GetParam().whole_experts ? GetParam().ranks : 1;
      o.expert_exchange = GetParam().exchange;
    }
    o.page_tokens = 16;
    o.max_tokens = 256;
    o.max_sequences = 8;
    o.max_batch_tokens = 48;
    o.threads = 1;
    o.deterministic = "strict";  // groups find other prefixes in their caches than one engine does
    o.cache_dtype = GetParam().cache;
    o.draft_tokens = GetParam().drafts;
    o.dp_policy = GetParam().policy;
    o.cache_bytes = int64_t{64} << 20;
    o.cache_dir = cache_dir_;
    auto settings = ResolveOptions(o, model.config(), machine_, {}, share.value_or(RankShare()));
    EXPECT_TRUE(settings) << ToString(settings.error());
    if (GetParam().pages > 0) settings->pages = GetParam().pages;
    return *settings;
  }

  Answers AskOne() const {
    const auto model = Load(Wanted());
    const auto core =
        EngineCore::Create({.model = model.get(), .machine = &machine_}, SettingsFor(*model));
    EXPECT_TRUE(core) << ToString(core.error());
    return AskAll(**core, model->config().vocab);
  }

  DpWorld World() const {
    const Case& c = GetParam();
    return {.model = c.model,
            .ranks = c.ranks,
            .groups = c.groups,
            .whole_experts = c.whole_experts,
            .mtp = Wanted().mtp,
            .settings = [this](const Model& model, const RankShare& share) {
              return SettingsFor(model, share);
            }};
  }
  void Lead(const std::function<void(DpEngine&)>& f) const { World().Lead(f); }

  Machine machine_ = testing_support::MachineWithAvx2();
  std::string cache_dir_;
};

TEST_P(DpEngineTest, AnswersAreTheBytesOfOneRank) {
  const Answers expected = AskOne();
  ASSERT_EQ(expected.size(), 9U);
  DpWorld world = World();
  world.Lead([&](DpEngine& engine) {
    EXPECT_EQ(AskAll(engine, Load({})->config().vocab), expected);
    const EngineStats all = engine.Stats();
    EXPECT_EQ(all.pages_used, 0);
    EXPECT_EQ(all.requests_finished, 9);
    int64_t pages = 0;
    for (const EngineStats& one : engine.GroupStats()) {
      EXPECT_GT(one.generated_tokens, 0) << "a group has had no request";
      EXPECT_EQ(one.pages_used, 0);
      pages += one.pages_total;
    }
    EXPECT_EQ(all.pages_total, pages);
    if (GetParam().pages > 0) {
      EXPECT_GT(all.preemptions, 0);
    }
    if (std::string_view(GetParam().drafts) != "0") {
      EXPECT_GT(all.drafted_tokens, 0);
    }
  });
  for (const CollectiveTrace& trace : world.traces) {
    const bool leads = Of(trace, kLeaders).size() > 2;
    EXPECT_EQ(TraceDifference(Of(world.traces.front(), kWorld), Of(trace, kWorld)), "");
    if (leads) {
      EXPECT_EQ(TraceDifference(Of(world.traces.front(), kLeaders), Of(trace, kLeaders)), "");
    }
  }
}

constexpr Case kCases[] = {
    {"models/tiny"},
    {"models/tiny", 2, 2, true},
    {"models/tiny", 3, 3, true, "0", "bf16", "all-to-all"},
    {"models/tiny", 4, 2, false, "0", "bf16", "padded", "round-robin"},
    {"models/tiny", 4, 2, true, "3"},
    {"models/tiny", 2, 2, false, "2", "fp8", "auto", "tokens", 9},
    {"models/tiny", 4, 4, true, "0", "int8", "gather"},
    {"tests/goldens/v3_noaux", 2, 2, true},
    {"tests/goldens/v3_mtp2", 3, 3, true, "4"},
    {"tests/goldens/glm52_mtp", 4, 2, false, "3"},
    {"tests/goldens/v32_mtp", 2, 2, true, "2", "fp8"},
    {"tests/goldens/fp8", 4, 2, true},
    {"tests/goldens/int8", 2, 2},
    {"tests/goldens/gptq", 2, 2, true},
};
INSTANTIATE_TEST_SUITE_P(Models, DpEngineTest, testing::ValuesIn(kCases),
                         testing_support::ParameterName());

using DpEngineOfTinyTest = DpEngineTest;
INSTANTIATE_TEST_SUITE_P(Tiny, DpEngineOfTinyTest,
                         testing::Values(Case{"models/tiny", 4, 4, true, "2"}),
                         testing_support::ParameterName());

TEST_P(DpEngineOfTinyTest, PrefixesFromDiskAreFoundByAllGroups) {
  const testing_support::ScratchDir folder;
  cache_dir_ = folder.path();
  Answers first;
  Lead([&](DpEngine& engine) {
    first = AskAll(engine, 256);
    EXPECT_TRUE(engine.SavePrefixes());
  });
  Lead([&](DpEngine& engine) {
    EXPECT_EQ(AskAll(engine, 256), first);
    for (const EngineStats& one : engine.GroupStats()) EXPECT_GT(one.disk_tokens, 0);
  });
}

// Each group keeps the rows of its own requests: a quarter of all, where requests are alike.
TEST_P(DpEngineOfTinyTest, RowsOfRequestsAreDividedAmongGroups) {
  constexpr int kRequests = 8;
  const auto ask = [](Engine& engine) {
    engine.SetEventSink({});
    for (uint64_t name = 0; name < kRequests; ++name) {
      Request r = Ask(70, name, 256);
      r.tokens.front() = static_cast<int32_t>(name);  // no prefix in common
      EXPECT_TRUE(engine.Submit(std::move(r)));
    }
    Finish(engine);
  };
  const auto model = Load(Wanted());
  const auto alone =
      EngineCore::Create({.model = model.get(), .machine = &machine_}, SettingsFor(*model));
  ask(**alone);
  const int64_t kept = (*alone)->Stats().pages_cached;
  EXPECT_EQ(kept, kRequests * (70 / 16));
  Lead([&](DpEngine& engine) {
    ask(engine);
    for (const EngineStats& one : engine.GroupStats()) EXPECT_EQ(one.pages_cached, kept / 4);
  });
}

TEST_P(DpEngineOfTinyTest, GroupsWithoutTokensAreIdle) {
  Lead([&](DpEngine& engine) {
    engine.SetEventSink([](std::span<const TokenEvent>) {});
    Request r = Ask(40, 1, 256);
    r.stop.max_tokens = 1;
    EXPECT_TRUE(engine.Submit(std::move(r)));
    Finish(engine);
    EXPECT_EQ(engine.Stats().idle_tokens, 3 * 40);
  });
}

TEST_P(DpEngineOfTinyTest, CancelledAndRefusedRequestsEnd) {
  Lead([&](DpEngine& engine) {
    Answers answers;
    Listen(engine, answers);
    Request bad = Ask(5, 1, 256);
    bad.tokens.front() = -7;
    EXPECT_EQ(engine.Submit(bad).error().code, Code::kInvalidArgument);
    std::vector<RequestId> ids;
    for (uint64_t name = 10; name < 14; ++name) {
      const Result<RequestId> id = engine.Submit(Ask(30, name, 256));
      ASSERT_TRUE(id);
      ids.push_back(*id);
    }
    engine.Cancel(ids[3]);  // before a group has it
    ASSERT_TRUE(engine.Step());
    ASSERT_TRUE(engine.Step());
    engine.Cancel(ids[0]);
    engine.Cancel(ids[1]);
    engine.Cancel(RequestId{999});
    Finish(engine);
    EXPECT_EQ((answers[{10, 0}].finish), FinishReason::kCancelled);
    EXPECT_EQ((answers[{11, 0}].finish), FinishReason::kCancelled);
    EXPECT_EQ((answers[{12, 0}].finish), FinishReason::kLength);
    EXPECT_EQ((answers[{13, 0}].finish), FinishReason::kCancelled);
    EXPECT_EQ(engine.Stats().pages_used, 0);
    EXPECT_EQ(engine.Stats().requests_cancelled, 3);
    // Nothing is left that a group could have news of.
    EXPECT_FALSE(engine.WaitForWork(std::chrono::steady_clock::now() + std::chrono::seconds(1)));
  });
}

// Rank 0 checks requests; what a group still refuses ends with its error.
TEST_P(DpEngineOfTinyTest, ARequestThatAGroupRefusesEndsWithItsError) {
  const auto model = Load(Wanted());
  auto core = EngineCore::Create({.model = model.get(), .machine = &machine_}, SettingsFor(*model));
  RunRanks(1, {}, [&](Communicator& world) {
    GroupEngine engine(std::move(*core), 0, world);
    Request bad = Ask(5, 77, 256);
    bad.id = 4;
    bad.tokens.front() = -7;
    bad.n = 2;
    const GroupReport report = engine.Do({.orders = {{0, 4, bad}, {1, 5, Ask(5, 1, 256)}}});
    ASSERT_EQ(report.events.size(), 2U);
    for (int choice = 0; choice < 2; ++choice) {
      const TokenEvent& event = report.events[static_cast<size_t>(choice)];
      EXPECT_EQ(event.request, 4U);
      EXPECT_EQ(event.user_data, 77U);
      EXPECT_EQ(event.choice, choice);
      EXPECT_EQ(event.finish, FinishReason::kError);
      EXPECT_EQ(event.error.code, Code::kInvalidArgument);
    }
    EXPECT_EQ(report.stats.running + report.stats.waiting, 0) << "it has a request of group 1";
  });
}

TEST_P(DpEngineOfTinyTest, AGroupReportsWhatIsLeftOfPrompts) {
  const auto model = Load(Wanted());
  auto core = EngineCore::Create({.model = model.get(), .machine = &machine_}, SettingsFor(*model));
  RunRanks(1, {}, [&](Communicator& world) {
    GroupEngine engine(std::move(*core), 0, world);
    GroupOrders orders{.orders = {{0, 4, Ask(100, 1, 256)}, {0, 5, Ask(90, 2, 256)}}};
    orders.orders[0].request->id = 4;
    orders.orders[1].request->id = 5;
    orders.orders[1].request->tokens.front() = 9;
    std::map<RequestId, std::vector<int64_t>> left;
    for (int step = 0; step < 5; ++step) {
      const auto report = ReadReport(WriteReport(engine.Do(orders)));
      ASSERT_TRUE(report);
      for (const auto& prefill : report->prefills) left[prefill.request].push_back(prefill.tokens);
      orders.orders.clear();
    }
    // Steps of 48 tokens; the second is admitted in the third, which has no room for a chunk of it.
    EXPECT_EQ(left[4], (std::vector<int64_t>{52, 4}));
    ASSERT_GT(left[5].size(), 1U);
    EXPECT_EQ(left[5][0], 90);
    EXPECT_LT(left[5][1], 90);
  });
}

TEST_P(DpEngineOfTinyTest, PromptsGoWhereTheirPrefixesAre) {
  Lead([&](DpEngine& engine) {
    std::map<uint64_t, int64_t> cached;
    engine.SetEventSink([&](std::span<const TokenEvent> events) {
      for (const TokenEvent& e : events) cached[e.user_data] = e.cached_tokens;
    });
    const auto ask = [&](uint64_t name, int32_t text, const char* salt) {
      Request r = Ask(70, name, 256);
      r.tokens.front() = text;
      r.cache_salt = salt;
      EXPECT_TRUE(engine.Submit(std::move(r)));
    };
    for (int32_t text = 0; text < 4; ++text) ask(0, text, "a");
    Finish(engine);
    for (int32_t text = 3; text >= 0; --text) ask(static_cast<uint64_t>(10 + text), text, "a");
    ask(20, 0, "b");
    Finish(engine);
    for (uint64_t name = 10; name < 14; ++name) EXPECT_EQ(cached[name], 64) << name;
    EXPECT_EQ(cached[20], 0);
  });
}

// Four requests, one for each group; later, the group with the least work left gets a fifth.
TEST_P(DpEngineOfTinyTest, TheChoiceHearsOfStepsAndOfCancelledRequests) {
  for (const bool cancels : {false, true})
    Lead([&](DpEngine& engine) {
      engine.SetEventSink([](std::span<const TokenEvent>) {});
      const auto ask = [&](uint64_t name, int64_t prompt, int64_t answer) {
        Request r = Ask(prompt, name, 256);
        r.tokens.front() = static_cast<int32_t>(name);
        r.stop.max_tokens = answer;
        const Result<RequestId> id = engine.Submit(std::move(r));
        EXPECT_TRUE(id);
        return id.value_or(0);
      };
      const RequestId first = cancels ? ask(0, 3, 150) : ask(0, 200, 1);
      for (uint64_t name = 1; name < 4; ++name) ask(name, 3, 100);
      // Of 200 tokens, 8 are left to compute after four steps of 48.
      for (int step = 0; step < 4; ++step) EXPECT_TRUE(engine.Step());
      if (cancels) {
        engine.Cancel(first);
        EXPECT_TRUE(engine.Step());
      }
      const int64_t before = engine.GroupStats()[0].generated_tokens;
      ask(4, 3, 60);
      Finish(engine);
      EXPECT_GE(engine.GroupStats()[0].generated_tokens, before + 60);
    });
}

// Requests wait in a queue of their group, whether or not the group has heard of them.
TEST_P(DpEngineOfTinyTest, EveryGroupHasAQueueWithALimit) {
  Lead([&](DpEngine& engine) {
    const auto most = static_cast<uint64_t>(4 * engine.options().max_queued_requests);
    Answers answers;
    Listen(engine, answers);
    for (uint64_t name = 0; name < most; ++name)
      ASSERT_TRUE(engine.Submit(Ask(3, name, 256))) << name;
    EXPECT_EQ(engine.Submit(Ask(3, 0, 256)).error().code, Code::kExhausted);
    ASSERT_TRUE(engine.Step());  // eight run in each group
    for (uint64_t name = most; name < most + 32; ++name)
      EXPECT_TRUE(engine.Submit(Ask(3, name, 256))) << name;
    EXPECT_EQ(engine.Submit(Ask(3, 0, 256)).error().code, Code::kExhausted);
  });
}

// Fails in the third step of rank 1.
class FailingModel final : public Model {
 public:
  explicit FailingModel(std::unique_ptr<Model> inner) : inner_(std::move(inner)) {}
  const ModelConfig& config() const override { return inner_->config(); }
  void Forward(StepContext& step, const TensorView& h) const override {
    if (++calls_ == 3) throw std::bad_alloc();
    inner_->Forward(step, h);
  }
  void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const override {
    inner_->Logits(step, h, logits);
  }

 private:
  std::unique_ptr<Model> inner_;
  mutable std::atomic<int> calls_ = 0;
};

using DpEngineFailsTest = DpEngineTest;
INSTANTIATE_TEST_SUITE_P(Tiny, DpEngineFailsTest,
                         testing::Values(Case{"models/tiny"}, Case{"models/tiny", 4, 2}),
                         testing_support::ParameterName());

TEST_P(DpEngineFailsTest, ARankThatFailsIsNamedAndEndsAll) {
  Error error;
  DpWorld world = World();
  world.wrap = [](std::unique_ptr<Model> model, int rank) -> std::unique_ptr<Model> {
    if (rank != 1) return model;
    return std::make_unique<FailingModel>(std::move(model));
  };
  EXPECT_THROW(world.Lead([&](DpEngine& engine) {
    Answers answers;
    Listen(engine, answers);
    for (uint64_t name = 1; name < 5; ++name) ASSERT_TRUE(engine.Submit(Ask(30, name, 256)));
    for (int i = 0; i < 20 && error.message.empty(); ++i)
      if (const Status stepped = engine.Step(); !stepped) error = stepped.error();
    EXPECT_FALSE(engine.Step()) << "it goes on";
  }),
               RankLost);
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_NE(error.message.find("rank 1"), std::string::npos) << error.message;
}

TEST(RankGroups, RanksThatWereToldOtherwiseAreRefused) {
  RunRanks(2, {}, [](Communicator& world) {
    const int rank = world.rank();
    const auto made = RankWorld::Create(world.Split(0, rank), {.groups = 1 + rank});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    const auto whole =
        RankWorld::Create(world.Split(0, rank), {.groups = 2, .whole_experts = rank == 1});
    ASSERT_FALSE(whole);
    EXPECT_NE(whole.error().message.find("only on rank 1"), std::string::npos);
  });
}

}  // namespace
}  // namespace latte::dp_engine_test
