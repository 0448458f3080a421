// Ranks that share the weights give the bytes of one rank: text, logprobs, drafts and choices of
// keys, whatever the attention path, the cache and the format of weights.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/group/follower.h"
#include "src/engine/group/leader.h"
#include "src/models/registry.h"
#include "tests/support/avx2_machine.h"
#include "tests/support/comm/recorded.h"
#include "tests/support/comm/threads.h"
#include "tests/support/engine_run.h"
#include "tests/support/parameter_name.h"
#include "tests/support/scratch_dir.h"

namespace latte::shared_model_test {
namespace {

using testing_support::CollectiveRecord;
using testing_support::CollectiveTrace;
using testing_support::EngineRun;
using testing_support::MachineWithAvx2;
using testing_support::MakeRecorded;
using testing_support::RunRanks;
using testing_support::TraceDifference;

struct Case {
  const char* model;
  int ranks = 2;
  const char* attention = "auto";
  const char* cache = "bf16";
  const char* drafts = "0";
  int64_t pages = 0;  // 0: enough
  bool whole_experts = false;
  int groups = 1;  // the engine is that of the first; the others only have experts

  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << fmt::format("{} on {} in {} groups, {}, {}, drafts {}, pages {}{}", c.model, c.ranks,
                        c.groups, c.attention, c.cache, c.drafts, c.pages,
                        c.whole_experts ? ", whole experts" : "");
  }
};

// Tokens and the bits of their logprobs, by request and choice.
using Answers = std::map<EngineRun::Key, std::pair<std::vector<int32_t>, std::vector<float>>>;

class SharedModelTest : public testing::TestWithParam<Case> {
 protected:
  static std::string Dir() { return fmt::format("{}/{}", LATTE_SOURCE_DIR, GetParam().model); }

  std::unique_ptr<Model> Load(const RankShare& share,
                              const std::optional<RankShare>& experts = {}) const {
    auto loaded = LoadModel(Dir(), {.share = share,
                                    .expert_share = experts,
                                    .mtp = std::string_view(GetParam().drafts) != "0"});
    EXPECT_TRUE(loaded) << ToString(loaded.error());
    return loaded ? std::move(*loaded) : nullptr;
  }

  Settings SettingsFor(const Model& model, const RankShare& share) const {
    EngineOptions o;
    o.page_tokens = 16;
    o.max_tokens = 256;
    o.max_sequences = 8;
    o.max_batch_tokens = 48;
    o.threads = 1;
    o.attention = GetParam().attention;
    o.cache_dtype = GetParam().cache;
    o.draft_tokens = GetParam().drafts;
    o.cache_bytes = int64_t{64} << 20;
    auto settings = ResolveOptions(o, model.config(), machine_, {}, share);
    EXPECT_TRUE(settings) << ToString(settings.error());
    if (GetParam().pages > 0) settings->pages = GetParam().pages;
    return *settings;
  }

  // Prompts of several lengths, two of them with a common beginning, one answered twice.
  Answers Ask(const EngineParts& parts, const Settings& settings) const {
    auto run = EngineRun::Over(parts, settings);
    EXPECT_TRUE(run) << ToString(run.error());
    const auto vocab = static_cast<uint64_t>(parts.model->config().vocab);
    for (const int64_t length : {3, 17, 40, 70, 100, 100}) {
      Request r;
      for (int64_t i = 0; i < length; ++i)
        r.tokens.push_back(static_cast<int32_t>(Mix64(static_cast<uint64_t>(i)) % vocab));
      r.tokens.back() = static_cast<int32_t>(length % 7);
      r.sampling.temperature = 0.8;
      r.sampling.seed = static_cast<uint64_t>(length);
      r.stop.max_tokens = 36;
      r.stop.ignore_eos = true;
      r.logprobs = 0;
      r.n = length == 40 ? 2 : 1;
      EXPECT_TRUE((*run)->core().Submit(std::move(r)));
    }
    EXPECT_EQ((*run)->Finish(), "");
    EXPECT_TRUE((*run)->core().SavePrefixes());
    disk_tokens_ = (*run)->core().Stats().disk_tokens;
    Answers out;
    for (const auto& [key, outcome] : (*run)->outcomes())
      out[key] = {outcome.tokens, outcome.logprobs};
    if (GetParam().pages > 0) {
      EXPECT_GT((*run)->core().Stats().preemptions, 0);
    }
    return out;
  }

  // Calls f(parts, settings) on the leader of a group.
  void Lead(std::vector<CollectiveTrace>& traces, const auto& f) const {
    const int ranks = GetParam().ranks;
    traces.resize(static_cast<size_t>(ranks));
    RunRanks(ranks, {}, [&](Communicator& world) {
      const auto comm = MakeRecorded(world, traces[static_cast<size_t>(world.rank())]);
      const int groups = GetParam().groups;
      const int of_group = ranks / groups;
      const bool whole_experts = GetParam().whole_experts;
      const auto group = comm->Split(world.rank() / of_group, 0);
      auto share = Load({group->rank(), of_group, whole_experts},
                        RankShare{world.rank(), ranks, whole_experts});
      const RankComms comms{.world = comm.get(),
                            .group = group.get(),
                            .groups = groups,
                            .group_index = world.rank() / of_group};
      if (world.rank() > 0) return Follow({share.get(), &machine_, comms});
      const Settings settings = SettingsFor(*share, {0, of_group});
      Followers followers(comms, Followers::Of::kWorld);
      f({.model = share.get(), .machine = &machine_, .followers = &followers}, settings);
      followers.Stop();
    });
  }

  Machine machine_ = MachineWithAvx2();
  mutable int64_t disk_tokens_ = 0;  // of the last Ask
};

TEST_P(SharedModelTest, AnswersAreTheBytesOfOneRank) {
  const auto whole = Load({});
  const Answers expected =
      Ask({.model = whole.get(), .machine = &machine_}, SettingsFor(*whole, {}));
  ASSERT_EQ(expected.size(), 7U);
  std::vector<CollectiveTrace> traces;
  Lead(traces, [&](const EngineParts& parts, const Settings& settings) {
    EXPECT_EQ(Ask(parts, settings), expected);
  });
  // Ranks of other groups meet the first only in the world.
  const auto of_world = [](const CollectiveTrace& trace) {
    CollectiveTrace out;
    std::ranges::copy_if(trace, std::back_inserter(out),
                         [](const CollectiveRecord& one) { return one.group == "world"; });
    return out;
  };
  for (const CollectiveTrace& trace : traces)
    EXPECT_EQ(TraceDifference(of_world(traces.front()), of_world(trace)), "");
  for (int r = 0; r < GetParam().ranks / GetParam().groups; ++r)
    EXPECT_EQ(TraceDifference(traces.front(), traces[static_cast<size_t>(r)]), "");
}

// The answers of an engine that finds what the engine before it has left in a folder.
class RanksAndDiskTest : public SharedModelTest {
 protected:
  Answers AskTwice(const EngineParts& parts, Settings settings) const {
    const testing_support::ScratchDir folder;
    settings.options.cache_dir = folder.path();
    Ask(parts, settings);
    const Answers out = Ask(parts, settings);
    EXPECT_GT(disk_tokens_, 0);
    return out;
  }
};

TEST_P(RanksAndDiskTest, PrefixesFromDiskReachAllRanks) {
  const auto whole = Load({});
  const Answers expected =
      AskTwice({.model = whole.get(), .machine = &machine_}, SettingsFor(*whole, {}));
  std::vector<CollectiveTrace> traces;
  Lead(traces, [&](const EngineParts& parts, const Settings& settings) {
    EXPECT_EQ(AskTwice(parts, settings), expected);
  });
}

INSTANTIATE_TEST_SUITE_P(Models, RanksAndDiskTest,
                         testing::Values(Case{"models/tiny"},
                                         Case{"tests/goldens/v32_mtp", 3, "auto", "fp8", "2"}),
                         testing_support::ParameterName());

constexpr Case kCases[] = {
    {"models/tiny"},
    {"models/tiny", 4},
    {"models/tiny", 2, "auto", "bf16", "3"},
    {"models/tiny", 2, "auto", "fp8", "0", 9},
    {"models/tiny", 2, "decompressed"},
    {"models/tiny", 3, "auto", "bf16", "2", 0, true},
    {"tests/goldens/v3_noaux", 5, "auto", "bf16", "0", 0, true},
    {"tests/goldens/fp8", 2, "auto", "bf16", "0", 0, true},
    {"tests/goldens/int8", 2, "auto", "bf16", "0", 0, true},
    {"tests/goldens/axk1", 2, "auto", "bf16", "0", 0, true},
    {"models/tiny", 2, "latent", "int8"},
    {"tests/goldens/v3_noaux", 4},
    {"tests/goldens/v3_noaux", 2, "auto", "bf16", "2"},
    {"tests/goldens/v2_lite"},
    {"tests/goldens/v2_group", 2, "absorbed"},
    {"tests/goldens/v32_mtp", 2, "auto", "fp8", "2"},
    {"tests/goldens/glm52", 3},
    {"tests/goldens/v3_mtp2", 2, "auto", "bf16", "4"},
    {"tests/goldens/glm52_mtp", 2, "auto", "bf16", "3"},
    {"tests/goldens/fp8"},
    {"tests/goldens/int8"},
    {"tests/goldens/gptq"},
    {"tests/goldens/awq"},
    {"tests/goldens/axk1"},
    {"tests/goldens/mistral4"},
    {"tests/goldens/minicpm3"},
    {"tests/goldens/gguf_v3/model-00001-of-00004.gguf"},
    {"tests/goldens/gguf_v2/model.gguf", 3, "auto", "bf16", "0", 0, true},
    {"tests/goldens/gguf_v2/model.gguf"},
    {"tests/goldens/gguf_k2/model.gguf", 3, "auto", "bf16", "0", 0, true},
    {"tests/goldens/gguf_v32/model.gguf", 2, "auto", "fp8", "2"},
    {"tests/goldens/gguf_glm52/model.gguf", 3, "auto", "bf16", "3", 0, true},
    {"tests/goldens/gguf_mistral4/model.gguf"},
    {"tests/goldens/gguf_minicpm3/model.gguf", 3},
    {"models/tiny", 2, "auto", "bf16", "2", 0, false, 2},
    {"models/tiny", 4, "auto", "bf16", "0", 0, true, 2},
    {"tests/goldens/v3_mtp2", 3, "auto", "bf16", "4", 0, true, 3},
    {"tests/goldens/v32_mtp", 4, "auto", "fp8", "2", 0, false, 2},
};
INSTANTIATE_TEST_SUITE_P(Models, SharedModelTest, testing::ValuesIn(kCases),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::shared_model_test
