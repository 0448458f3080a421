// Ranks that divide the latent cache. Merged split by split, they give the bytes of one rank,
// whatever the format of the cache, drafts, prefixes and preemption; merged in parallel, nearly the
// same logits. Every prompt of more than a split lies on several ranks, shorter ones leave ranks
// without keys.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/core/given_sequence.h"
#include "src/engine/group/follower.h"
#include "src/engine/group/leader.h"
#include "src/models/registry.h"
#include "tests/support/avx2_machine.h"
#include "tests/support/comm/recorded.h"
#include "tests/support/comm/threads.h"
#include "tests/support/engine_run.h"
#include "tests/support/parameter_name.h"
#include "tests/support/scratch_dir.h"

namespace latte::shared_cache_test {
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
  int cache_ranks = 2;
  const char* attention = "auto";
  const char* cache = "bf16";
  const char* drafts = "0";
  int64_t pages_of_rank = 0;  // 0: enough
  int groups = 1;             // the engine is that of the first; the others only have experts

  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << fmt::format("{} on {}, cache on {}, {} groups, {}, {}, drafts {}, pages {}", c.model,
                        c.ranks, c.cache_ranks, c.groups, c.attention, c.cache, c.drafts,
                        c.pages_of_rank);
  }
};

// Tokens and the bits of their logprobs, by request and choice.
using Answers = std::map<EngineRun::Key, std::pair<std::vector<int32_t>, std::vector<float>>>;
// Logits of all tokens, [T, vocab].
using Logits = std::vector<float>;

class SharedCacheTest : public testing::TestWithParam<Case> {
 protected:
  static std::unique_ptr<Model> Load(const ModelOptions& options) {
    auto loaded = LoadModel(fmt::format("{}/{}", LATTE_SOURCE_DIR, GetParam().model), options);
    EXPECT_TRUE(loaded) << ToString(loaded.error());
    return loaded ? std::move(*loaded) : nullptr;
  }
  static bool Drafts() { return std::string_view(GetParam().drafts) != "0"; }

  static EngineOptions Options(bool divided, const char* deterministic) {
    EngineOptions o;
    o.page_tokens = 16;
    o.max_tokens = 3400;
    o.max_sequences = 6;
    o.max_batch_tokens = 512;
    o.threads = 1;
    o.attention = GetParam().attention;
    o.cache_dtype = GetParam().cache;
    o.draft_tokens = GetParam().drafts;
    o.deterministic = deterministic;
    o.cache_bytes = int64_t{64} << 20;
    if (!divided) return o;
    o.tp = GetParam().ranks;
    o.dp = GetParam().groups;
    o.dcp = GetParam().cache_ranks;
    return o;
  }

  Settings SettingsFor(const Model& model, bool divided) const {
    auto settings = ResolveOptions(Options(divided, "strict"), model.config(), machine_, {});
    EXPECT_TRUE(settings) << ToString(settings.error());
    if (GetParam().pages_of_rank > 0)
      settings->pages = GetParam().pages_of_rank * GetParam().cache_ranks;
    return *settings;
  }

  static std::vector<int32_t> Text(int64_t length, int64_t vocab) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < length; ++i)
      out.push_back(
          static_cast<int32_t>(Mix64(static_cast<uint64_t>(i)) % static_cast<uint64_t>(vocab)));
    return out;
  }

  // Prompts of one to four splits with a common beginning, one answered twice.
  Answers Ask(const EngineParts& parts, const Settings& settings) const {
    auto run = EngineRun::Over(parts, settings);
    EXPECT_TRUE(run) << ToString(run.error());
    for (const int64_t length : {3, 1020, 1100, 2040, 3100}) {
      Request r;
      r.tokens = Text(length, parts.model->config().vocab);
      r.tokens.back() = static_cast<int32_t>(length % 7);
      r.sampling.temperature = 0.8;
      r.sampling.seed = static_cast<uint64_t>(length);
      // Where pages are few, more than are put aside for sequences that run.
      r.stop.max_tokens = GetParam().pages_of_rank > 0 ? 120 : 36;
      r.stop.ignore_eos = true;
      r.logprobs = 0;
      r.n = length == 1100 ? 2 : 1;
      EXPECT_TRUE((*run)->core().Submit(std::move(r)));
    }
    EXPECT_EQ((*run)->Finish(), "");
    EXPECT_TRUE((*run)->core().SavePrefixes());
    EXPECT_GT((*run)->core().Stats().cached_tokens, 0);
    disk_tokens_ = (*run)->core().Stats().disk_tokens;
    if (GetParam().pages_of_rank > 0 && settings.options.dcp > 1) {
      EXPECT_GT((*run)->core().Stats().preemptions, 0);
    }
    Answers out;
    for (const auto& [key, outcome] : (*run)->outcomes())
      out[key] = {outcome.tokens, outcome.logprobs};
    return out;
  }

  // A long prompt, then single tokens.
  Logits Score(const Model& model, const Settings& settings, Followers* followers) const {
    auto sequence = GivenSequence::Create(model, machine_, settings, followers);
    EXPECT_TRUE(sequence) << ToString(sequence.error());
    Logits out;
    const auto keep = [&](int64_t, const TensorView& rows) -> Status {
      out.insert(out.end(), rows.Ptr<float>(), rows.Ptr<float>() + rows.elements());
      return {};
    };
    const std::vector<int32_t> text = Text(3100, model.config().vocab);
    const std::span<const int32_t> all(text);
    EXPECT_TRUE((*sequence)->AppendPrompt(all.first(2040), keep));
    for (size_t i = 2040; i < 2060; ++i) EXPECT_TRUE((*sequence)->AppendGenerated(text[i], keep));
    EXPECT_TRUE((*sequence)->AppendPrompt(all.subspan(2060, 3), keep));
    EXPECT_TRUE((*sequence)->AppendPrompt(all.subspan(2063, 1030), keep));
    EXPECT_TRUE((*sequence)->AppendGenerated(text[3093], keep));
    return out;
  }

  // Calls f(model, followers) on the leader of all ranks. alike: the first ranks, which make the
  // same calls.
  void Lead(int alike, const auto& f) const {
    const int ranks = GetParam().ranks;
    traces_.assign(static_cast<size_t>(ranks), {});
    RunRanks(ranks, {}, [&](Communicator& world) {
      const auto comm = MakeRecorded(world, traces_[static_cast<size_t>(world.rank())]);
      const int groups = GetParam().groups;
      const int of_group = ranks / groups;
      const auto group = comm->Split(world.rank() / of_group, 0);
      const auto cache = comm->Split(world.rank() / GetParam().cache_ranks, 0);
      ModelOptions options;
      options.share = {group->rank(), of_group};
      options.expert_share = RankShare{world.rank(), ranks};
      options.head_share = HeadShare(options.share, cache->size());
      options.mtp = Drafts();
      const auto share = Load(options);
      const RankComms comms{.world = comm.get(),
                            .group = group.get(),
                            .cache = cache.get(),
                            .groups = groups,
                            .group_index = world.rank() / of_group};
      if (world.rank() > 0) return Follow({share.get(), &machine_, comms});
      Followers followers(comms, Followers::Of::kWorld);
      f(*share, followers);
      followers.Stop();
    });
    for (int r = 1; r < alike; ++r)
      EXPECT_EQ(TraceDifference(traces_.front(), traces_[static_cast<size_t>(r)]), "");
  }

  Machine machine_ = MachineWithAvx2();
  mutable int64_t disk_tokens_ = 0;              // of the last Ask
  mutable std::vector<CollectiveTrace> traces_;  // of the last Lead
};

TEST_P(SharedCacheTest, SplitBySplitAnswersAreTheBytesOfOneRank) {
  const auto whole = Load({.mtp = Drafts()});
  Settings alone = SettingsFor(*whole, false);
  alone.pages = GetParam().pages_of_rank * GetParam().cache_ranks;
  if (alone.pages == 0) alone.pages = SettingsFor(*whole, false).pages;
  const Answers expected = Ask({.model = whole.get(), .machine = &machine_}, alone);
  ASSERT_EQ(expected.size(), 6U);
  Lead(GetParam().ranks / GetParam().groups, [&](const Model& model, Followers& followers) {
    EXPECT_EQ(Ask({.model = &model, .machine = &machine_, .followers = &followers},
                  SettingsFor(model, true)),
              expected);
  });
}

// The answers of an engine that finds what the engine before it has left in a folder.
class SharedCacheAndDiskTest : public SharedCacheTest {
 protected:
  Answers AskTwice(const EngineParts& parts, Settings settings) const {
    const testing_support::ScratchDir folder;
    settings.options.cache_dir = folder.path();
    Ask(parts, settings);
    const Answers out = Ask(parts, settings);
    EXPECT_GT(disk_tokens_, int64_t{2} * kSplitKeys);
    return out;
  }
};

TEST_P(SharedCacheAndDiskTest, PagesOfAllRanksAreSavedAndLoaded) {
  const auto whole = Load({.mtp = Drafts()});
  const Answers expected =
      AskTwice({.model = whole.get(), .machine = &machine_}, SettingsFor(*whole, false));
  // Only ranks that divide the leader's cache send pages.
  Lead(GetParam().cache_ranks, [&](const Model& model, Followers& followers) {
    EXPECT_EQ(AskTwice({.model = &model, .machine = &machine_, .followers = &followers},
                       SettingsFor(model, true)),
              expected);
  });
}

INSTANTIATE_TEST_SUITE_P(Models, SharedCacheAndDiskTest,
                         testing::Values(Case{"models/tiny", 4, 2, "auto", "fp8", "2"}),
                         testing_support::ParameterName());

// KL divergence in nats of each row.
std::vector<double> Divergences(const Logits& want, const Logits& got, int64_t vocab) {
  const auto log_softmax = [vocab](const float* z) {
    std::vector<double> out(z, z + vocab);
    const double max = *std::ranges::max_element(out);
    double sum = 0;
    for (const double one : out) sum += std::exp(one - max);
    for (double& one : out) one -= max + std::log(sum);
    return out;
  };
  std::vector<double> all;
  for (size_t at = 0; at < want.size(); at += static_cast<size_t>(vocab)) {
    const std::vector<double> p = log_softmax(want.data() + at);
    const std::vector<double> q = log_softmax(got.data() + at);
    double kl = 0;
    for (size_t i = 0; i < p.size(); ++i) kl += std::exp(p[i]) * (p[i] - q[i]);
    all.push_back(kl);
  }
  return all;
}

class SharedCacheLogitsTest : public SharedCacheTest {
 protected:
  Settings SettingsOfOne(const Model& model, bool divided, const char* deterministic) const {
    EngineOptions o = Options(divided, deterministic);
    // Where activations are rounded to bf16, partial outputs are rounded too, and the noise hides
    // errors.
    if (o.deterministic == "on") o.dtype = "f32";
    auto settings = ResolveOptionsForOne(o, model.config(), machine_, 3200);
    EXPECT_TRUE(settings) << ToString(settings.error());
    return *settings;
  }
};

TEST_P(SharedCacheLogitsTest, AreThoseOfOneRank) {
  const auto whole = Load({});
  // Chosen keys of a split lie on several ranks.
  const bool chooses = SettingsOfOne(*whole, false, "on").sparse_from != kNeverSparse;
  const int alike = GetParam().ranks;
  if (!chooses) {
    const Logits strict = Score(*whole, SettingsOfOne(*whole, false, "strict"), nullptr);
    Lead(alike, [&](const Model& model, Followers& followers) {
      EXPECT_TRUE(Score(model, SettingsOfOne(model, true, "strict"), &followers) == strict);
    });
  }
  const Logits usual = Score(*whole, SettingsOfOne(*whole, false, "on"), nullptr);
  const ModelConfig& config = whole->config();
  Lead(alike, [&](const Model& model, Followers& followers) {
    const Logits parallel = Score(model, SettingsOfOne(model, true, "on"), &followers);
    ASSERT_EQ(parallel.size(), usual.size());
    double worst = 0, sum = 0;
    const std::vector<double> all = Divergences(usual, parallel, config.vocab);
    for (const double kl : all) worst = std::max(worst, kl), sum += kl;
    EXPECT_LT(sum / static_cast<double>(all.size()), 1e-6);
    EXPECT_LT(worst, 1e-4);
  });
  if (std::string_view(GetParam().attention) != "absorbed") return;
  // The outputs of all heads of the rank, with their lse.
  int64_t sent = 0;
  for (const CollectiveRecord& one : traces_.front())
    if (one.op == "all_to_all") sent += one.bytes;
  const int64_t tokens = std::ssize(usual) / config.vocab;
  const int64_t heads = config.mla.h * GetParam().cache_ranks / GetParam().ranks;
  EXPECT_EQ(sent, tokens * config.layers * heads * (config.mla.v + 1) * 4);
}

INSTANTIATE_TEST_SUITE_P(Models, SharedCacheLogitsTest,
                         testing::Values(Case{"models/tiny", 2, 2, "absorbed"},
                                         Case{"tests/goldens/v3_noaux", 4, 2, "absorbed"},
                                         Case{"models/tiny-sparse", 2, 2, "auto", "f32"},
                                         Case{"tests/goldens/v32_sparse", 3, 3, "auto", "f32"}),
                         testing_support::ParameterName());

constexpr Case kCases[] = {
    {"models/tiny", 2, 2, "auto", "bf16", "3"},
    {"models/tiny", 4, 2, "absorbed", "int8"},
    {"models/tiny", 4, 4, "latent", "fp8"},
    {"tests/goldens/v3_noaux", 3, 3, "auto", "fp8", "2"},
    {"tests/goldens/v2_lite", 2, 2, "absorbed"},
    {"models/tiny", 2, 2, "auto", "bf16", "0", 136},
    {"models/tiny", 4, 2, "auto", "bf16", "2", 0, 2},
};
INSTANTIATE_TEST_SUITE_P(Models, SharedCacheTest, testing::ValuesIn(kCases),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::shared_cache_test
