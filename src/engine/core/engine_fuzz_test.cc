// Random traffic through engines of many shapes: every answer is what the definition says, and
// nothing is left over.
#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"
#include "tests/support/traffic.h"

namespace latte::engine_fuzz_test {
namespace {

using testing_support::EngineRun;
using testing_support::FakeModel;
using testing_support::FaultOfRareTokens;
using testing_support::ScratchDir;
using testing_support::Traffic;
using testing_support::TrafficOptions;

EngineOptions RandomOptions(Random& random, const TrafficOptions& traffic,
                            AttentionMode mode = AttentionMode::kAuto) {
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.Below(static_cast<uint64_t>(high - low + 1)));
  };
  EngineOptions o;
  o.attention = Name(mode);
  o.page_tokens = 16 << between(0, 1);
  o.max_tokens = traffic.max_tokens;
  o.max_sequences = between(4, 12);
  o.max_batch_tokens = between(o.max_sequences + 1, 100);
  o.aging_steps = between(1, 50);
  o.threads = static_cast<int>(between(1, 2));
  o.dtype = between(0, 1) == 0 ? "bf16" : "f32";
  const int64_t drafts = between(0, kMostDrafts + 1);
  o.draft_tokens = drafts > kMostDrafts ? "auto" : std::to_string(drafts);
  CacheSpec spec =
      CacheSpecFor(testing_support::FakeConfig(), mode,
                   CacheDType::Plain(o.dtype == "f32" ? DType::kF32 : DType::kBF16), o.page_tokens);
  if (o.draft_tokens != "0") spec.layers += testing_support::FakeConfig().mtp_layers;
  const int64_t longest = traffic.max_tokens / o.page_tokens;
  o.cache_bytes = spec.bytes_per_page() * between(longest + 1, 4 * longest);
  return o;
}

struct Totals {
  int64_t preemptions = 0;
  int64_t cached_tokens = 0;
  int64_t disk_tokens = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t accepted = 0;
};

void RunOne(uint64_t seed, EngineOptions engine, const TrafficOptions& traffic, Totals& totals) {
  FakeModel model;
  model.fault = traffic.fault;
  const auto run = EngineRun::Create(model, engine);
  ASSERT_TRUE(run) << ToString(run.error());
  ASSERT_EQ(Traffic(**run, traffic).Run(), "")
      << "seed " << seed << ", max_batch_tokens " << engine.max_batch_tokens << ", max_sequences "
      << engine.max_sequences << ", cache_bytes " << engine.cache_bytes << ", page_tokens "
      << engine.page_tokens;
  const EngineStats stats = (*run)->core().Stats();
  totals.preemptions += stats.preemptions;
  totals.cached_tokens += stats.cached_tokens;
  totals.disk_tokens += stats.disk_tokens;
  totals.failed += stats.requests_failed;
  totals.cancelled += stats.requests_cancelled;
  totals.accepted += stats.accepted_tokens;
}

TEST(EngineFuzzTest, StrictAnswersAreThoseOfEachRequestAlone) {
  const ScratchDir dir;
  Totals totals;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    TrafficOptions traffic;
    traffic.seed = seed;
    traffic.failing = 4;
    traffic.fault = FaultOfRareTokens;
    EngineOptions options = RandomOptions(random, traffic);
    options.deterministic = "strict";
    // Engines of equal pages and rows share the folder, one after the other.
    if (seed % 3 != 0) options.cache_dir = dir.File("prefixes");
    RunOne(seed, options, traffic, totals);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(totals.preemptions, 100);
  EXPECT_GT(totals.cached_tokens, 10000);
  EXPECT_GT(totals.disk_tokens, 1000);
  EXPECT_GT(totals.failed, 50);
  EXPECT_GT(totals.cancelled, 50);
  EXPECT_GT(totals.accepted, 1000);
}

TEST(EngineFuzzTest, AnswersWithoutPrefixesAreThoseOfEachRequestAlone) {
  Totals totals;
  for (uint64_t seed = 100; seed < 130; ++seed) {
    Random random(seed);
    TrafficOptions traffic;
    traffic.seed = seed;
    EngineOptions options = RandomOptions(random, traffic);
    options.deterministic = "strict";
    options.prefix_cache = false;
    RunOne(seed, options, traffic, totals);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(totals.preemptions, 50);
  EXPECT_EQ(totals.cached_tokens, 0);
}

// Under the other levels a hit may change bytes, but never ends, counts or pages.
TEST(EngineFuzzTest, OtherLevelsAndModesEndEveryAnswer) {
  Totals totals;
  for (uint64_t seed = 200; seed < 230; ++seed) {
    Random random(seed);
    TrafficOptions traffic;
    traffic.seed = seed;
    traffic.compare = false;
    traffic.failing = 4;
    traffic.fault = FaultOfRareTokens;
    EngineOptions options = RandomOptions(random, traffic, static_cast<AttentionMode>(seed % 4));
    options.deterministic = seed % 2 == 0 ? "on" : "off";
    RunOne(seed, options, traffic, totals);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(totals.preemptions, 50);
}

}  // namespace
}  // namespace latte::engine_fuzz_test
