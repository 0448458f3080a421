// The promises of the scheduler about drafts, as traces (scheduler_test.cc): every '?' is a draft
// at the end of a chunk.
#include <string>

#include <gtest/gtest.h>

#include "tests/support/scheduler_trace.h"

namespace latte::scheduler_drafts_test {
namespace {

using testing_support::Own;
using testing_support::Pages;
using testing_support::Small;
using testing_support::Trace;

TEST(SchedulerDrafts, RightOnesAreKeptUpToTheFirstWrongOne) {
  Trace t;
  t.Add('a', 4);
  EXPECT_EQ(t.Step(), "+a a 0-4L!");
  EXPECT_EQ(t.Draft('a', {t.Next('a', 0), t.Next('a', 1), 7, t.Next('a', 3)}), 4);
  EXPECT_EQ(t.Step(), "a 4-9A!????");
  EXPECT_EQ(t['a'].length(), 8);
  EXPECT_EQ(t['a'].cached_len, 7);
  EXPECT_EQ(t.Step(), "a 7-8A!");
}

TEST(SchedulerDrafts, AllOfThemRightGiveOneTokenMore) {
  Trace t;
  t.Add('a', 4);
  t.Step();
  EXPECT_EQ(t.Draft('a', {t.Next('a', 0), t.Next('a', 1)}), 2);
  EXPECT_EQ(t.Step(), "a 4-7A!??");
  EXPECT_EQ(t['a'].length(), 8);
  EXPECT_EQ(t.Step(), "a 7-8A!");
}

TEST(SchedulerDrafts, OnlySampledTokensGetThem) {
  Trace t;
  t.Add('a', 10);
  t.Step();
  EXPECT_EQ(t.Draft('a', {1, 2}), 0);  // in the middle of its prompt
  t.Step();
  t.Add('b', Own('a', 9));
  t.Step();
  EXPECT_EQ(t['b'].shared_len, 8);
  t.Add('c', Own('a', 9));
  t.scheduler().Plan();
  EXPECT_EQ(t.Draft('c', {1}), 0);  // the last token of its prompt takes the prompt's path
}

TEST(SchedulerDrafts, NeverPassTheEndOfTheAnswer) {
  Trace t;
  t.Add('a', 4, 4);
  t.Step();
  EXPECT_EQ(t.Draft('a', {t.Next('a', 0), t.Next('a', 1), t.Next('a', 2)}), 2);
  EXPECT_EQ(t.Step(), "a 4-7A!??");
  EXPECT_TRUE(t.Ended('a'));
}

TEST(SchedulerDrafts, TakeHalfOfTheRoomThatDecodesLeave) {
  Trace t;  // steps of 8 tokens
  t.Add('a', 2);
  t.Add('b', 2);
  t.Step();
  t.Add('c', 20);
  EXPECT_EQ(t.Draft('a', {1, 2}), 2);
  EXPECT_EQ(t.Draft('b', {1, 2}), 2);
  EXPECT_EQ(t.Step(), "+c a 2-5A!?? b 2-4A!? c 0-3L");
}

TEST(SchedulerDrafts, DoNotMakeAPromptWaitForALargerPiece) {
  SchedulerOptions options = Small();
  options.max_batch_tokens = 5;
  options.max_sequences = 2;
  Trace t(options);
  t.Add('a', 2);
  t.Step();
  t.Add('b', 9);
  EXPECT_EQ(t.Draft('a', {1, 2}), 2);
  EXPECT_EQ(t.Step(), "+b a 2-5A!?? b 0-2L");
}

TEST(SchedulerDrafts, LeaveAPageForEveryOtherSequence) {
  Trace t(Small(), Pages(5));
  t.Add('a', 3);
  t.Add('b', 3);
  t.Step();
  EXPECT_EQ(t.Draft('a', {1, 2, 3}), 3);  // 3 pages are in use, one is free
  EXPECT_EQ(t.Draft('b', {1, 2, 3}), 3);  // the last page, as no other sequence needs one yet
  Trace few(Small(), Pages(3));
  few.Add('a', 3);
  few.Add('b', 3);
  few.Step();
  EXPECT_EQ(few.Draft('a', {1, 2, 3}), 0);  // the free page may be b's next
}

TEST(SchedulerDrafts, GoWithAPreemption) {
  Trace t(Small(), Pages(4));
  t.Add('a', 7);
  t.Step();
  t.Add('b', 3);
  t.Step();
  std::string step;
  for (int i = 0; i < 20 && step.find("-b") == std::string::npos; ++i) {
    t['b'].drafts = {1};
    step = t.Step();
  }
  EXPECT_NE(step.find("-b"), std::string::npos);
  EXPECT_TRUE(t['b'].drafts.empty());
}

TEST(SchedulerDrafts, APageOfAcceptedOnesIsFoundEvenIfTheAnswerEndsThere) {
  Trace t;
  t.Add('a', 6, 4);
  t.Step();
  EXPECT_EQ(t.Draft('a', {t.Next('a', 0), t.Next('a', 1)}), 2);
  EXPECT_EQ(t.Step(), "a 6-9A!??");
  ASSERT_TRUE(t.Ended('a'));
  auto tokens = t['a'].tokens;
  tokens.resize(9);
  t.Add('b', tokens);
  EXPECT_EQ(t.Step(), "+b b 8-9L!");
}

}  // namespace
}  // namespace latte::scheduler_drafts_test
