#include "src/engine/step/step.h"

#include <gtest/gtest.h>

#include "src/engine/step/step_settings.h"

namespace latte::step_test {
namespace {

constexpr StepCapacity kRoom = {
    .tokens = 6, .chunks = 4, .pages = 8, .copies = 2, .logit_rows = 200, .page_tokens = 16};

TEST(Step, ItsListsKeepTheirAddresses) {
  Step step(kRoom);
  const int32_t* const tokens = step.tokens.room().data();
  const int32_t* const pages = step.pages.room().data();
  const std::vector<int32_t> ids = {1, 2, 3}, of_sequence = {7};
  for (int round = 0; round < 3; ++round) {
    step.Clear();
    EXPECT_TRUE(step.empty());
    step.AddChunk(SequenceChunk::Of(ids, 0, MlaPath::kAbsorbed, of_sequence));
    EXPECT_EQ(step.tokens.values().data(), tokens);
    EXPECT_EQ(step.pages.values().data(), pages);
    EXPECT_EQ(step.slots.values()[2], 7 * 16 + 2);
  }
  const Step moved = std::move(step);
  EXPECT_EQ(moved.tokens.values().data(), tokens);
  EXPECT_EQ(moved.tokens.values()[1], 2);
}

// A device copies this much, from the first list to the pages in use.
TEST(Step, TheBlockReachesToTheLastPage) {
  Step step(kRoom);
  const size_t empty = step.block().size();
  const std::vector<int32_t> ids = {1, 2, 3}, of_sequence = {7, 5};
  step.AddChunk(SequenceChunk::Of(ids, 16, MlaPath::kAbsorbed, of_sequence));
  EXPECT_EQ(step.block().size(), empty + 2 * sizeof(int32_t));
  EXPECT_LE(std::ssize(step.block()), step.block_bytes());
}

TEST(Step, LogitsComeInBlocks) {
  Step step(kRoom);
  std::vector<int64_t> rows(150);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  step.AddLogits(rows);
  step.AddLogits({});
  step.AddLogits(std::vector<int64_t>{3});
  ASSERT_EQ(step.logit_blocks(), 4);
  EXPECT_EQ(step.LogitRows(0).size(), 64u);
  EXPECT_EQ(step.LogitRows(2).size(), 22u);
  EXPECT_EQ(step.LogitRows(2).front(), 128);
  EXPECT_EQ(step.LogitRows(3).front(), 3);
}

TEST(StepDeathTest, MoreThanItsRoomIsAFault) {
  Step step(kRoom);
  const std::vector<int32_t> ids(7), of_sequence = {7};
  EXPECT_DEATH(step.AddChunk(SequenceChunk::Of(ids, 0, MlaPath::kAbsorbed, of_sequence)),
               "more than 6 values");
}

// The largest step that a scheduler may plan for these settings.
TEST(Step, TheCapacityOfSettingsHoldsEverySequence) {
  Settings settings;
  settings.options.max_sequences = 3;
  settings.options.max_batch_tokens = 12;
  settings.options.max_tokens = 100;
  settings.options.page_tokens = 16;
  settings.pages = 50;
  for (const bool drafts : {false, true}) {
    settings.drafts_by_mtp = drafts;
    Step step(CapacityOf(settings, 2));
    const std::vector<int32_t> ids(4), of_sequence(7);
    for (int i = 0; i < 3; ++i)
      step.AddChunk(SequenceChunk::Of(ids, 96, MlaPath::kLatent, of_sequence), 98);
    EXPECT_EQ(step.chunks.size(), 6);
    EXPECT_TRUE(step.chunks.full());
    EXPECT_EQ(step.pages.size(), 21);
  }
}

}  // namespace
}  // namespace latte::step_test
