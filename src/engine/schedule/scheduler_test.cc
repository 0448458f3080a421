// The promises of the scheduler, as traces. A step reads
//   "+a +b a 0-5L! b 0-3L"   a and b are admitted; a computes its tokens 0 to 4 by the latent path
//                            and then draws one; b computes 0 to 2
//   "-b a 4-5A!"             b is preempted; a computes token 4 by the absorbed path and draws
#include "src/engine/schedule/scheduler.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/scheduler_trace.h"

namespace latte::scheduler_test {
namespace {

using testing_support::operator+;
using testing_support::Own;
using testing_support::Pages;
using testing_support::Small;
using testing_support::Tokens;
using testing_support::Trace;

TEST(Scheduler, PromptGoesInPiecesOfTheBudgetThenTokenByToken) {
  Trace t;
  t.Add('a', 20, 3);
  EXPECT_EQ(t.Step(), "+a a 0-8L");
  EXPECT_EQ(t.Step(), "a 8-16L");
  EXPECT_EQ(t.Step(), "a 16-20L!");
  EXPECT_EQ(t.Step(), "a 20-21A!");
  EXPECT_EQ(t.Step(), "a 21-22A!");
  EXPECT_EQ(t.Step(), "");
  EXPECT_TRUE(t.scheduler().idle());
  EXPECT_EQ(t.cache().used_pages(), 0);
}

TEST(Scheduler, GeneratedTokensGoFirstAndPromptsShareWhatIsLeft) {
  Trace t;
  t.Add('a', 2);
  t.Add('b', 2);
  EXPECT_EQ(t.Step(), "+a +b a 0-2L! b 0-2L!");
  t.Add('c', 9);
  EXPECT_EQ(t.Step(), "+c a 2-3A! b 2-3A! c 0-6L");
  EXPECT_EQ(t.Step(), "a 3-4A! b 3-4A! c 6-9L!");
  EXPECT_EQ(t.Step(), "a 4-5A! b 4-5A! c 9-10A!");
}

TEST(Scheduler, FirstComeFirstServed) {
  Trace t;
  t.Add('b', 16);
  t.Add('c', 8);
  EXPECT_EQ(t.Step(), "+b b 0-8L");
  t.Add('a', 8);
  EXPECT_EQ(t.Step(), "b 8-16L!");
  EXPECT_EQ(t.Step(), "+c b 16-17A! c 0-7L");
  EXPECT_EQ(t.Step(), "+a b 17-18A! c 7-8L! a 0-6L");
}

TEST(Scheduler, SecondPromptOfAStepGetsNoTinyPiece) {
  Trace t;
  t.Add('a', 6);
  t.Add('b', 6);
  t.Add('c', 2);
  EXPECT_EQ(t.Step(), "+a +b a 0-6L!");  // 2 tokens of b are not worth expanding its prefix
  EXPECT_EQ(t.Step(), "+c a 6-7A! b 0-6L!");
  EXPECT_EQ(t.Step(), "a 7-8A! b 6-7A! c 0-2L!");  // all of it is no tiny piece
}

TEST(Scheduler, ALongPromptLeavesRoomForMuchShorterOnes) {
  Trace t;
  t.Add('a', 48);
  EXPECT_EQ(t.Step(), "+a a 0-8L");
  t.Add('b', 5);
  t.Add('c', 40);
  t.Add('d', 3);
  // Half of a step at most; c is not much shorter, but has its place before d.
  EXPECT_EQ(t.Step(), "+b a 8-12L b 0-4L");
  EXPECT_EQ(t.Step(), "+c +d b 4-5L! a 12-16L d 0-3L!");
  EXPECT_EQ(t.Step(), "b 5-6A! d 3-4A! a 16-22L");
}

TEST(Scheduler, RoomThatShorterOnesCannotUseIsFilled) {
  Trace t(Small(), Pages(14));
  t.Add('a', 48);
  EXPECT_EQ(t.Step(), "+a a 0-8L");
  t.Add('b', 5);  // there are no pages for it
  EXPECT_EQ(t.Step(), "a 8-16L");
}

TEST(Scheduler, LowerPriorityGoesFirstAndWhoWaitsGainsOnIt) {
  SchedulerOptions options = Small();
  options.aging_steps = 10;
  options.max_sequences = 1;
  Trace t(options);
  t.Add('z', 2, 20, {.priority = 1});
  EXPECT_EQ(t.Step(), "+z z 0-2L!");
  t.Add('b', 2, 1, {.priority = 0});
  t.Add('a', 2, 1, {.priority = -1});
  EXPECT_EQ(t.StepsUntil("+a"), 20);
  EXPECT_EQ(t.Step(), "+b b 0-2L!");

  // A new one of the better priority in every step: the other is served after ten.
  t.Add('z', 2, 1, {.priority = 1});
  int steps = 0;
  for (std::string step; step.find("+z") == std::string::npos; step = t.Step(), ++steps) {
    ASSERT_LT(steps, 100);
    t.Add(static_cast<char>(33 + steps), 2, 1);
  }
  EXPECT_EQ(steps, 12);
}

TEST(Scheduler, AWholePromptIsAdmittedOrNone) {
  Trace t(Small(), Pages(6));
  t.Add('a', 8, 4);  // 3 pages with the first sampled token
  t.Add('b', 12, 4);
  EXPECT_EQ(t.Step(), "+a a 0-8L!");
  EXPECT_EQ(t.cache().used_pages(), 3);
  EXPECT_EQ(t.Step(), "a 8-9A!");  // 3 pages are free, b wants 4
  t.Remove('a');
  EXPECT_EQ(t.Step(), "+b b 0-8L");
}

TEST(Scheduler, APageIsLeftForEveryoneWhoRuns) {
  Trace t(Small(), Pages(4));
  t.Add('a', 7);
  t.Add('b', 7);
  EXPECT_EQ(t.Step(), "+a a 0-7L!");  // 2 pages are free, and b wants 2
  EXPECT_EQ(t.Step(), "a 7-8A!");
}

TEST(Scheduler, TheHeadOfTheQueueIsNotOvertaken) {
  Trace t(Small(), Pages(6));
  t.Add('a', 8, 8);
  EXPECT_EQ(t.Step(), "+a a 0-8L!");
  t.Add('b', 16);  // does not fit with a
  t.Add('c', 2);   // would
  EXPECT_EQ(t.Step(), "a 8-9A!");
  t.Remove('a');
  EXPECT_EQ(t.Step(), "+b b 0-8L");
}

TEST(Scheduler, PreemptionTakesTheLastWhichThenDoesTheSameAgain) {
  Trace t(Small(), Pages(4));
  t.Add('a', 3, 9);
  t.Add('b', 2, 9);
  EXPECT_EQ(t.Step(), "+a +b a 0-3L! b 0-2L!");
  EXPECT_EQ(t.Step(), "a 3-4A! b 2-3A!");
  EXPECT_EQ(t.Step(), "a 4-5A! b 3-4A!");
  EXPECT_EQ(t.Step(), "a 5-6A! b 4-5A!");
  EXPECT_EQ(t.Step(), "a 6-7A! b 5-6A!");
  EXPECT_EQ(t.Step(), "a 7-8A! b 6-7A!");
  EXPECT_EQ(t.Step(), "-b a 8-9A!");
  EXPECT_EQ(t['b'].pages.size(), 0u);
  EXPECT_EQ(t.Step(), "a 9-10A!");  // 3 pages for b and 1 for a to go on are not there
  EXPECT_EQ(t.Step(), "a 10-11A!");
  EXPECT_EQ(t.Step(), "b 0-2L");  // a has ended; the prompt's path, then that of generated tokens
  EXPECT_EQ(t.Step(), "b 2-8A!");
  EXPECT_EQ(t.Step(), "b 8-9A!");
  EXPECT_EQ(t['b'].preemptions, 1);
  EXPECT_EQ(t.scheduler().preemptions(), 1);
}

TEST(Scheduler, APreemptedSequenceKeepsWhatItShares) {
  Trace t(Small(), Pages(6));
  const Tokens common = Own('s', 4);
  t.Add('x', common + Own('x', 1), 1);
  EXPECT_EQ(t.Step(), "+x x 0-5L!");  // leaves the first page in the tree
  t.Add('a', 8, 16);
  t.Add('b', common + Own('b', 4), 8);
  EXPECT_EQ(t.Step(), "+a a 0-8L!");
  EXPECT_EQ(t.Step(), "a 8-9A!");  // b waits: 2 pages besides the shared one and one for a
  t.Remove('a');
  EXPECT_EQ(t.Step(), "+b b 4-8L!");
  const int32_t shared = t['b'].pages[0];
  t.Add('a', 3, 17, {.priority = -1});
  EXPECT_EQ(t.Step(), "+a b 8-9A! a 0-3L!");
  EXPECT_GT(t.StepsUntil("-b"), 0);
  EXPECT_EQ(t['b'].pages, std::vector<int32_t>{shared});
  EXPECT_EQ(t['b'].cached_len, 4);
  EXPECT_GT(t.StepsUntil("b 4-8L"), 0);
  EXPECT_EQ(t['b'].pages[0], shared);
}

TEST(Scheduler, WithoutReplayAPreemptedSequenceBecomesAPrompt) {
  SchedulerOptions options = Small();
  options.replay = false;
  CacheManagerOptions cache = Pages(4);
  cache.prefix_cache = false;
  Trace t(options, cache);
  t.Add('a', 3, 9);
  t.Add('b', 2, 9);
  EXPECT_EQ(t.StepsUntil("-b"), 7);
  EXPECT_EQ(t.StepsUntil("a 10-11A!"), 2);
  EXPECT_EQ(t.Step(), "b 0-8L!");  // all by one path; its second admission is not reported
}

TEST(Scheduler, AloneItTakesThePrefixesThatWaitingOnesKeep) {
  Trace t(Small(), Pages(6));
  const Tokens common = Own('s', 8);
  t.Add('x', common + Own('x', 1), 1);
  EXPECT_EQ(t.Step(), "+x x 0-8L");
  EXPECT_EQ(t.Step(), "x 8-9L!");
  t.Add('a', 3, 21);  // in the end all six pages
  t.Add('b', common + Own('b', 1), 8);
  EXPECT_EQ(t.Step(), "+a +b a 0-3L! b 8-9L!");
  EXPECT_GT(t.StepsUntil("-b"), 0);
  EXPECT_EQ(t['b'].pages.size(), 2u);
  EXPECT_GT(t.StepsUntil("a 16-17A!"), 0);
  EXPECT_EQ(t['b'].pages.size(), 0u);
  EXPECT_EQ(t['a'].preemptions, 0);
  EXPECT_EQ(t.StepsUntil("b 0-8L"), 7);  // after a's end; by the path of the first time
}

// Its own rows lie below equal rows of others in the tree. No sequence uses those, but nothing can
// evict them while its own rows are there.
TEST(Scheduler, AloneItIsNotStuckBehindItsOwnPredecessors) {
  Trace t(Small(), Pages(5));
  t.Add('a', 9, 1);
  EXPECT_EQ(t.StepsUntil("a 8-9L!"), 2);
  t.Add('b', Own('a', 9), 11, {.reuses_prefix = false});
  EXPECT_EQ(t.StepsUntil("+b b 0-8L"), 1);
  EXPECT_EQ(t.StepsUntil("-b b 0-8L"), 5);  // it needs a fourth page
  EXPECT_EQ(t.StepsUntil("b 18-19A!"), 8);  // and a fifth, for which it need not begin again
  EXPECT_EQ(t.scheduler().preemptions(), 1);
  EXPECT_TRUE(t.scheduler().idle());
}

TEST(Scheduler, AnswersForkAfterThePromptAndCopyThePageTheyWriteTo) {
  Trace t;
  t.Add('p', 6, 4, {.outputs = 3});
  EXPECT_EQ(t.Step(), "+p p 0-6L!");
  EXPECT_EQ(t.scheduler().running(), 3);
  EXPECT_EQ(t.cache().used_pages(), 2);
  const int32_t last = t['p'].pages[1];
  EXPECT_EQ(t.Step(), "p 6-7A! q 6-7A! r 6-7A!");
  ASSERT_EQ(t.ops().size(), 2u);  // the last one to write needs no copy
  EXPECT_EQ(t.ops()[0].from, last);
  EXPECT_EQ(t.ops()[1].from, last);
  EXPECT_EQ(t.ops()[0].to, t['p'].pages[1]);
  EXPECT_EQ(t['r'].pages[1], last);
  EXPECT_EQ(t.cache().used_pages(), 4);
  EXPECT_EQ(t['q'].pages[0], t['p'].pages[0]);
  EXPECT_EQ(t.Step(), "p 7-8A! q 7-8A! r 7-8A!");
  EXPECT_TRUE(t.ops().empty());
}

TEST(Scheduler, ThereIsAPlaceForEveryAnswer) {
  Trace t;
  t.Add('p', 2, 3, {.outputs = 3});
  t.Add('z', 2, 3, {.outputs = 2});
  EXPECT_EQ(t.Step(), "+p p 0-2L!");
  EXPECT_EQ(t.Step(), "p 2-3A! q 2-3A! r 2-3A!");
  t.Remove('q');
  EXPECT_EQ(t.Step(), "+z p 3-4A! r 3-4A! z 0-2L!");
}

TEST(Scheduler, APromptWaitsForTheOneThatComputesItsBeginning) {
  Trace t;
  const Tokens common = Own('s', 9);
  t.Add('a', common + Own('a', 3));
  t.Add('b', common + Own('b', 3));
  EXPECT_EQ(t.Step(), "+a a 0-8L");
  EXPECT_EQ(t.Step(), "+b a 8-12L! b 8-12L!");
  EXPECT_EQ(t['b'].pages[1], t['a'].pages[1]);
  EXPECT_EQ(t['b'].shared_len, 8);
}

TEST(Scheduler, OthersAreServedWhileItWaitsForABeginning) {
  Trace t;
  t.Add('a', 14);
  t.Add('b', Own('a', 14));
  t.Add('c', 2);
  EXPECT_EQ(t.Step(), "+a a 0-8L");
  EXPECT_EQ(t.Step(), "+c a 8-14L! c 0-2L!");
  EXPECT_EQ(t.Step(), "+b a 14-15A! c 2-3A! b 12-14L!");

  CacheManagerOptions forgetful = Pages(64);
  forgetful.prefix_cache = false;
  Trace f(Small(), forgetful);
  f.Add('a', 12);
  f.Add('b', Own('a', 12));
  EXPECT_EQ(f.Step(), "+a a 0-8L");
  EXPECT_EQ(f.Step(), "+b a 8-12L! b 0-4L");  // nothing to wait for
}

TEST(Scheduler, NothingIsSharedUnderAnotherSaltOrWhereAllLogitsAreWanted) {
  Trace t;
  t.Add('a', 8, 1);
  EXPECT_EQ(t.Step(), "+a a 0-8L!");
  t.Add('b', Own('a', 8), 1, {.salt = "other"});
  EXPECT_EQ(t.Step(), "+b b 0-8L!");
  t.Add('c', Own('a', 8), 1, {.reuses_prefix = false});
  EXPECT_EQ(t.Step(), "+c c 0-8L!");
  t.Add('d', Own('a', 8), 1);
  EXPECT_EQ(t.Step(), "+d d 4-8L!");  // one token at least is computed, here a page
  t.Add('e', 14, 1);
  t.Add('f', Own('e', 14), 1, {.salt = "other"});
  EXPECT_EQ(t.Step(), "+e e 0-8L");
  EXPECT_EQ(t.Step(), "+f e 8-14L!");  // f does not wait for e's beginning
}

TEST(Scheduler, RowsOfAnswersAreReusedUnlessStrict) {
  for (const bool share : {true, false}) {
    SchedulerOptions options = Small();
    options.share_generated = share;
    Trace t(options);
    t.Add('a', 6);
    for (int i = 0; i < 8; ++i) t.Step();
    const Tokens next = t['a'].tokens;
    ASSERT_EQ(next.size(), 14u);
    t.Remove('a');
    t.Add('b', next, 1);
    EXPECT_EQ(t.Step(), share ? "+b b 12-14L!" : "+b b 4-12L");
  }
}

TEST(Scheduler, ThePathFollowsFromWhatIsLeftAtAdmission) {
  SchedulerOptions options = Small();
  options.prompt_path = [](int64_t new_tokens, int64_t cached_tokens) {
    return new_tokens < cached_tokens ? MlaPath::kAbsorbed : MlaPath::kLatent;
  };
  Trace t(options);
  t.Add('a', 8, 1);
  EXPECT_EQ(t.Step(), "+a a 0-8L!");
  t.Add('b', 2);
  t.Add('c', Own('a', 8) + Own('c', 2), 1);
  EXPECT_EQ(t.Step(), "+b +c c 8-10A! b 0-2L!");  // sorted by path
}

TEST(Scheduler, APathMayChangeAsASequenceGrowsAndStepsAreSortedByPath) {
  SchedulerOptions options = Small();
  options.chunk_path = [](MlaPath usual, int64_t cached_len, int64_t count) {
    return cached_len + count > 6 ? MlaPath::kSparse : usual;
  };
  Trace t(options);
  t.Add('a', 4, 5);
  EXPECT_EQ(t.Step(), "+a a 0-4L!");
  t.Add('b', 3, 2);
  EXPECT_EQ(t.Step(), "+b a 4-5A! b 0-3L!");
  EXPECT_EQ(t.Step(), "a 5-6A! b 3-4A!");
  t.Add('c', 2, 2);
  EXPECT_EQ(t.Step(), "+c c 0-2L! a 6-7S!");
  EXPECT_EQ(t.Step(), "c 2-3A! a 7-8S!");
}

// `a` leaves tokens to the shorter `b`, which waits for a's rows, and gets them back.
TEST(Scheduler, ThePathOfAChunkFollowsFromItsLastLength) {
  SchedulerOptions options = Small();
  options.chunk_path = [](MlaPath usual, int64_t cached_len, int64_t count) {
    return cached_len + count > 6 ? MlaPath::kSparse : usual;
  };
  Trace t(options);
  t.Add('a', 40, 1);
  t.Add('b', Own('a', 5), 1);
  EXPECT_EQ(t.Step(), "+a a 0-8S");
}

TEST(Scheduler, ItRunsWhenItsPagesHaveComeFromDisk) {
  SchedulerOptions options = Small();
  options.pages_on_disk = [](const Sequence& s, int64_t first) {
    return s.spec.id == 'a' ? 3 - first : 0;
  };
  Trace t(options);
  t.Add('a', 14);
  t.Add('b', 3);
  EXPECT_EQ(t.Step(), "+a +b b 0-3L!");
  ASSERT_EQ(t.loads().size(), 3u);
  EXPECT_EQ(t.loads()[2].page, t['a'].pages[2]);
  EXPECT_EQ(t.Step(), "b 3-4A!");
  t.Loaded('a', 2);  // one fewer than hoped
  EXPECT_EQ(t['a'].loaded_len, 8);
  EXPECT_EQ(t.Step(), "b 4-5A! a 8-14L!");
  t.Add('c', Own('a', 9), 1);
  EXPECT_EQ(t.Step(), "+c a 14-15A! b 5-6A! c 8-9L!");  // what was loaded is found by others
}

TEST(Scheduler, AllOfAPromptOnDiskLeavesATokenToCompute) {
  SchedulerOptions options = Small();
  options.pages_on_disk = [](const Sequence&, int64_t) { return 100; };
  Trace t(options);
  t.Add('a', 8);
  t.Step();
  EXPECT_EQ(t.loads().size(), 1u);
  t.Loaded('a', 0);
  EXPECT_EQ(t.Step(), "a 0-8L!");
}

TEST(Scheduler, AloneItGivesUpEvenWhatWasLoaded) {
  SchedulerOptions options = Small();
  options.pages_on_disk = [](const Sequence& s, int64_t) { return s.spec.id == 'b' ? 2 : 0; };
  Trace t(options, Pages(6));
  t.Add('b', 9, 15);  // in the end all six pages
  EXPECT_EQ(t.Step(), "+b");
  t.Add('a', Own('b', 5), 1, {.reuses_prefix = false});
  EXPECT_EQ(t.Step(), "+a a 0-5L!");
  t.Loaded('b', 2);  // the second of them comes to lie below a's first
  EXPECT_EQ(t.Step(), "b 8-9L!");
  EXPECT_EQ(t.StepsUntil("-b"), 12);
  EXPECT_EQ(t['b'].cached_len, 8);
  EXPECT_EQ(t['b'].loaded_len, 0);  // it computed them itself
  EXPECT_EQ(t.StepsUntil("b 22-23A!"), 5);
  EXPECT_TRUE(t.scheduler().idle());
}

TEST(Scheduler, EndedWhileLoadingItsPagesAreFreeAndTheirArrivalIsNoNews) {
  SchedulerOptions options = Small();
  options.pages_on_disk = [](const Sequence&, int64_t) { return 1; };
  Trace t(options);
  t.Add('a', 8);
  t.Step();
  t.Remove('a');
  EXPECT_EQ(t.cache().used_pages(), 0);
  t.Loaded('a', 1);
  EXPECT_EQ(t.Step(), "");
}

TEST(Scheduler, RemovalFreesEverythingAtEveryPoint) {
  for (int after = 0; after < 12; ++after) {
    Trace t(Small(), Pages(8));
    t.Add('p', 11, 8, {.outputs = 3});
    t.Add('z', Own('p', 11), 8);
    for (int i = 0; i < after; ++i) t.Step();
    for (const char name : {'z', 'q', 'p', 'r'})
      if (!t.Ended(name)) t.Remove(name);
    EXPECT_EQ(t.cache().used_pages(), 0) << after;
    EXPECT_EQ(t.cache().available_pages(), 8) << after;
    EXPECT_TRUE(t.scheduler().idle());
    EXPECT_EQ(t.Step(), "");
  }
}

TEST(Scheduler, KnowsHowManyPagesItsSequencesLack) {
  Trace t(Small(), Pages(8));  // of 4 tokens
  EXPECT_EQ(t.scheduler().PagesShort(0, 1), -8);
  t.Add('a', 8, 20);
  EXPECT_EQ(t.scheduler().PagesShort(0, 1), 3 - 8);
  EXPECT_EQ(t.Step(), "+a a 0-8L!");  // has room for the next token
  EXPECT_EQ(t.scheduler().PagesShort(0, 1), 1 - 5);
  EXPECT_EQ(t.scheduler().PagesShort(0, 12), 3 - 5);
  t.Add('b', 30, 2);
  t.Add('c', 30, 2);  // behind b, so it does not count
  EXPECT_EQ(t.scheduler().PagesShort(0, 1), 1 + 8 - 5);
  EXPECT_EQ(t.scheduler().PagesShort(0, 100), 4 + 8 - 5) << "no more than the longest answer";
}

}  // namespace
}  // namespace latte::scheduler_test
