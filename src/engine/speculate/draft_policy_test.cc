#include "src/engine/speculate/draft_policy.h"

#include <gtest/gtest.h>

#include "src/base/random.h"

namespace latte::draft_policy_test {
namespace {

Settings Auto() {
  Settings out;
  out.draft_tokens = kMostDrafts;
  out.adapts_drafts = true;
  return out;
}

// A sequence whose drafts are right with probability `right`, on a machine where a row and a draft
// take these parts of a step.
struct World {
  double right = 0.9;
  double row = 0.1;
  double draft = 0.1;
};

// Drafts per token over the tokens from `first` to `last` of an answer.
double DraftsPerToken(const World& world, int64_t first, int64_t last) {
  DraftPolicy policy(Auto());
  DraftRecord record;
  int64_t drafted = 0;
  int64_t generated = 1;
  for (uint64_t random = 0; generated < last; ++random) {
    const int64_t count = policy.Count(record, generated);
    policy.DraftsTook(world.draft * static_cast<double>(count), count);
    policy.StepTook(1 + world.row * static_cast<double>(count), count + 1, 1);
    int64_t accepted = 0;
    while (accepted < count &&
           static_cast<double>(Mix64(random * 8 + static_cast<uint64_t>(accepted)) >> 11) *
                   0x1p-53 <
               world.right)
      ++accepted;
    if (generated >= first) drafted += count;
    generated += accepted + 1;
    policy.Record(record, generated, count, accepted);
  }
  return static_cast<double>(drafted) / static_cast<double>(last - first);
}

TEST(DraftPolicy, AFixedNumberIsKept) {
  Settings settings;
  settings.draft_tokens = 3;
  DraftPolicy policy(settings);
  DraftRecord record;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(policy.Count(record, i), 3);
    policy.StepTook(1, 4, 1);
    policy.DraftsTook(30, 3);
    policy.Record(record, i, 3, 0);
  }
}

TEST(DraftPolicy, WrongDraftsEndAndAreSeldomTriedAgain) {
  // Far within 3 %: a draft takes 0.4 of a step, and pauses get longer.
  EXPECT_LT(DraftsPerToken({.right = 0, .row = 0.2, .draft = 0.2}, 64, 2048), 0.01 / 0.4);
}

TEST(DraftPolicy, RightDraftsAreMadeAsFarAsTheyPay) {
  EXPECT_GT(DraftsPerToken({.right = 1}, 64, 2048), 0.7);  // 4 of 5 tokens
  const double dear = DraftsPerToken({.right = 0.7, .row = 0.3, .draft = 0.3}, 64, 2048);
  EXPECT_GT(dear, 0.4);  // one per step of 1.7 tokens
  EXPECT_LT(dear, 0.75);
  EXPECT_LT(DraftsPerToken({.right = 0.7, .row = 0.4, .draft = 0.4}, 64, 2048), 0.15);
}

TEST(DraftPolicy, TheyComeBackWhenTheTextIsEasyAgain) {
  DraftPolicy policy(Auto());
  DraftRecord record;
  int64_t generated = 1;
  int64_t drafted = 0;
  for (int step = 0; step < 2000; ++step) {
    const int64_t count = policy.Count(record, generated);
    policy.DraftsTook(0.2 * static_cast<double>(count), count);
    policy.StepTook(1 + 0.2 * static_cast<double>(count), count + 1, 1);
    const int64_t accepted = step < 300 ? 0 : count;
    generated += accepted + 1;
    policy.Record(record, generated, count, accepted);
    if (step >= 1500) drafted += count;
  }
  EXPECT_GT(drafted, 3 * 500);
}

// A step in which something else held the processor tells nothing of what rows cost.
TEST(DraftPolicy, InterruptedStepsChangeLittle) {
  for (const int64_t interrupted : {1, 5}) {
    DraftPolicy policy(Auto());
    for (int step = 0; step < 60; ++step) {
      const int64_t rows = 1 + step % 5;
      policy.DraftsTook(0.1, 1);
      policy.StepTook(1 + 0.1 * static_cast<double>(rows), rows, 1);
    }
    policy.StepTook(1000, interrupted, 1);
    policy.DraftsTook(1000, 1);
    DraftRecord record;
    EXPECT_GE(policy.Count(record, 10), 2) << interrupted;
    record.accepted = {0.05, 0.05, 0.05, 0.05};
    EXPECT_EQ(policy.Count(record, 10), 0) << interrupted;
  }
}

TEST(DraftPolicy, AStepOf64DraftsNothing) {
  DraftPolicy policy(Auto());
  DraftRecord record;
  int plain = 0;
  for (int step = 0; step < 640; ++step) {
    const int64_t count = policy.Count(record, 10);
    plain += count == 0 ? 1 : 0;
    policy.DraftsTook(0.01 * static_cast<double>(count), count);
    policy.StepTook(1 + 0.01 * static_cast<double>(count), count + 1, 1);
    policy.Record(record, 10, count, count);
  }
  EXPECT_EQ(plain, 10);
}

// Four wrong drafts halve the expectation.
TEST(DraftPolicy, TheFirstDraftsOfASequenceCountMost) {
  DraftPolicy policy(Auto());
  DraftRecord record;
  for (int i = 0; i < 4; ++i) policy.Record(record, 1, 1, 0);
  EXPECT_NEAR(record.accepted[0], 0.4, 1e-9);
  for (int i = 0; i < 400; ++i) policy.Record(record, 1, 1, 1);
  const double before = record.accepted[0];
  policy.Record(record, 1, 1, 0);
  EXPECT_NEAR(record.accepted[0], before * 31 / 32, 1e-9);
}

TEST(DraftPolicy, ManySequencesMakeRowsDear) {
  DraftPolicy policy(Auto());
  DraftRecord record;
  // A step of 32 sequences whose time grows with every row.
  for (const int64_t rows : {32, 40, 32, 64, 48, 32})
    policy.StepTook(0.01 * static_cast<double>(rows), rows, 32);
  policy.DraftsTook(0.01, 10);
  EXPECT_EQ(policy.Count(record, 10), 0);
  DraftPolicy alone(Auto());
  for (const int64_t rows : {1, 2, 1, 3, 1})
    alone.StepTook(1 + 0.01 * static_cast<double>(rows), rows, 1);
  alone.DraftsTook(0.01, 10);
  EXPECT_EQ(alone.Count(record, 10), kMostDrafts);
}

}  // namespace
}  // namespace latte::draft_policy_test
