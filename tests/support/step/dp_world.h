// Engines of several groups of ranks in one process, for tests: requests, their answers, and worlds
// of threads.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/link/dp_engine.h"
#include "src/engine/link/rank_world.h"
#include "src/models/registry.h"
#include "tests/support/avx2_machine.h"
#include "tests/support/comm/recorded.h"
#include "tests/support/comm/threads.h"

namespace latte::testing_support {

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::optional<FinishReason> finish;
  Error error;
  bool operator==(const Answer& other) const {
    return tokens == other.tokens && logprobs == other.logprobs && finish == other.finish;
  }
};
inline void PrintTo(const Answer& a, std::ostream* out) {
  *out << fmt::format("[{}] {}", fmt::join(a.tokens, " "), a.error.message);
}
using Answers = std::map<std::pair<uint64_t, int>, Answer>;  // by user_data and choice

inline Request Ask(int64_t length, uint64_t name, int64_t vocab) {
  Request r;
  for (int64_t i = 0; i < length; ++i)
    r.tokens.push_back(
        static_cast<int32_t>(Mix64(static_cast<uint64_t>(i)) % static_cast<uint64_t>(vocab)));
  r.tokens.back() = static_cast<int32_t>(name % 7);
  r.sampling.temperature = 0.8;
  r.sampling.seed = name;
  r.stop.max_tokens = static_cast<int64_t>(20 + name % 17);
  r.stop.ignore_eos = true;
  r.logprobs = 0;
  r.user_data = name;
  return r;
}

// Writes events down.
inline void Listen(Engine& engine, Answers& answers) {
  engine.SetEventSink([&answers](std::span<const TokenEvent> events) {
    for (const TokenEvent& e : events) {
      Answer& a = answers[{e.user_data, e.choice}];
      EXPECT_FALSE(a.finish) << "an event after the last";
      if (e.token) a.tokens.push_back(*e.token);
      if (e.logprobs) a.logprobs.push_back(e.logprobs->chosen.logprob);
      a.finish = e.finish;
      a.error = e.error;
    }
  });
}

// Steps until nothing is left.
inline void Finish(Engine& engine) {
  const auto patience = std::chrono::seconds(10);
  do {
    const Status stepped = engine.Step();
    ASSERT_TRUE(stepped) << ToString(stepped.error());
    const EngineStats stats = engine.Stats();
    if (stats.running + stats.waiting == 0 && !engine.WaitForWork(std::chrono::steady_clock::now()))
      return;
  } while (engine.WaitForWork(std::chrono::steady_clock::now() + patience));
  FAIL() << "stuck";
}

// Groups as a trace names them.
constexpr const char* kWorld = "world.0";
constexpr const char* kLeaders = "world.0.1";

inline CollectiveTrace Of(const CollectiveTrace& trace, std::string_view group) {
  CollectiveTrace out;
  std::ranges::copy_if(trace, std::back_inserter(out),
                       [&](const CollectiveRecord& one) { return one.group == group; });
  return out;
}

// A world of ranks in groups, each a thread.
struct DpWorld {
  std::string model;  // a folder of the source tree
  int ranks = 2;
  int groups = 2;
  bool whole_experts = false;
  bool mtp = false;
  // For the engine of each group.
  std::function<Settings(const Model& model, const RankShare& share)> settings;
  // The model of rank `rank`.
  std::function<std::unique_ptr<Model>(std::unique_ptr<Model>, int rank)> wrap = {};
  Machine machine = MachineWithAvx2();
  std::vector<CollectiveTrace> traces = {};  // of each rank in the last Lead

  std::unique_ptr<Model> Load(const ModelOptions& options) const {
    auto loaded = LoadModel(fmt::format("{}/{}", LATTE_SOURCE_DIR, model), options);
    EXPECT_TRUE(loaded) << ToString(loaded.error());
    return loaded ? std::move(*loaded) : nullptr;
  }
  ModelOptions Wanted() const { return {.mtp = mtp}; }

  // Calls f(engine) on rank 0.
  void Lead(const std::function<void(DpEngine&)>& f) {
    traces.assign(static_cast<size_t>(ranks), {});
    RunRanks(ranks, {.deadline = std::chrono::seconds(60)}, [&](Communicator& threads) {
      const auto recorded = MakeRecorded(threads, traces[static_cast<size_t>(threads.rank())]);
      const auto made = RankWorld::Create(recorded->Split(0, threads.rank()),
                                          {.groups = groups, .whole_experts = whole_experts});
      ASSERT_TRUE(made) << ToString(made.error());
      RankWorld& group = **made;
      if (!group.leads()) return Follow(group);
      ModelOptions options = Wanted();
      ASSERT_TRUE(group.AnnounceModel("any", options));
      const auto share = group.ShareInGroups(Load(options));
      ASSERT_TRUE(share) << ToString(share.error());
      const auto make = [&](const Settings& own, StepAnnouncer* followers,
                            std::shared_ptr<RunnerMemory> memory) {
        return EngineCore::Create({.model = share->get(),
                                   .machine = &machine,
                                   .followers = followers,
                                   .memory = std::move(memory)},
                                  own);
      };
      const auto engine = group.JoinEngines(settings(**share, group.share()), {}, make);
      ASSERT_TRUE(engine) << ToString(engine.error());
      f(dynamic_cast<DpEngine&>(**engine));
    });
  }

  void Follow(RankWorld& group) const {
    const int rank = group.world().rank();
    RankWorld::Loaders load;
    load.share = [&](const std::string&, const ModelOptions& options) {
      std::unique_ptr<Model> share = Load(options);
      return Result<std::unique_ptr<Model>>(wrap ? wrap(std::move(share), rank) : std::move(share));
    };
    load.tokenizer = [](const std::string&) {
      return Tokenizer::Load(std::string(LATTE_SOURCE_DIR) + "/models/tiny");
    };
    const Status followed = group.Follow(machine, load);
    if (!followed) throw RankLost(rank, followed.error().message);
  }
};

}  // namespace latte::testing_support
