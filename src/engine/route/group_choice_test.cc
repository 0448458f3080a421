#include "src/engine/route/group_choice.h"

#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace latte::group_choice_test {
namespace {

using Policy = GroupChoice::Policy;

constexpr int64_t kPage = 4;

// A prompt of `length` tokens that begins as all with this `text` do.
Sequence Prompt(int64_t length, int32_t text, int64_t answer = 10) {
  Sequence s;
  s.tokens.resize(static_cast<size_t>(length));
  std::iota(s.tokens.begin(), s.tokens.end(), 1000 * text);
  s.spec.max_len = length + answer;
  return s;
}

class GroupChoiceTest : public testing::Test {
 protected:
  void Begin(Policy policy, int64_t groups, int64_t pages = 100, bool shares_answers = true) {
    choice_.emplace(GroupChoice::Options{.policy = policy,
                                         .groups = groups,
                                         .page_tokens = kPage,
                                         .pages = pages,
                                         .shares_answers = shares_answers});
  }
  // To one of the groups with room: all, or those named.
  std::optional<GivenRequest> Choose(const Sequence& s) {
    return choice_->Choose(s, [&](int64_t group) { return !full_.contains(group); });
  }
  GivenRequest Give(const Sequence& s) {
    auto given = Choose(s);
    EXPECT_TRUE(given);
    choice_->Add(*given);
    return *given;
  }
  // The group that would get it.
  int64_t GroupFor(const Sequence& s) { return Choose(s)->group; }
  void Answer(GivenRequest& request, int64_t tokens) {
    for (int64_t i = 0; i < tokens; ++i) choice_->Generated(request, static_cast<int32_t>(-i));
  }

  std::optional<GroupChoice> choice_;
  std::set<int64_t> full_;
};

TEST_F(GroupChoiceTest, BalancedMakesTheLargestLoadSmall) {
  Begin(Policy::kBalanced, 3);
  EXPECT_EQ(Give(Prompt(40, 1)).group, 0);  // 40 to compute, 10 to come, 40 / 8 kept
  EXPECT_EQ(choice_->load(0), 55);
  EXPECT_EQ(Give(Prompt(30, 2)).group, 1);
  EXPECT_EQ(Give(Prompt(8, 3)).group, 2);
  EXPECT_EQ(choice_->load(1), 43);
  EXPECT_EQ(choice_->load(2), 19);
  EXPECT_EQ(Give(Prompt(20, 4)).group, 2);  // 51, and no group has more than 55
  EXPECT_EQ(Give(Prompt(12, 5)).group, 1);  // 66: less than 78 or 74 elsewhere
}

TEST_F(GroupChoiceTest, OfEqualGroupsTheOneWithFewerRequestsThenTheNextInTurn) {
  Begin(Policy::kBalanced, 3);
  GivenRequest giant = Give(Prompt(400, 1));
  EXPECT_EQ(giant.group, 0);
  // The largest load is the giant's, whatever group the small ones go to.
  std::optional<GivenRequest> last;
  for (const int64_t expected : {1, 2, 1, 2}) {
    last = Give(Prompt(5, static_cast<int32_t>(2 + expected)));
    EXPECT_EQ(last->group, expected);
  }
  choice_->Remove(*last);
  EXPECT_EQ(GroupFor(Prompt(5, 9)), 2);
}

TEST_F(GroupChoiceTest, EqualGroupsTakeTurns) {
  for (const Policy policy : {Policy::kBalanced, Policy::kTokens, Policy::kRoundRobin}) {
    Begin(policy, 3);
    for (const int64_t expected : {0, 1, 2, 0, 1})
      EXPECT_EQ(Give(Prompt(6, static_cast<int32_t>(expected))).group, expected);
  }
}

TEST_F(GroupChoiceTest, KnownPagesAreSubtractedWhereTheyLie) {
  Begin(Policy::kBalanced, 2);
  GivenRequest first = Give(Prompt(40, 1));
  GivenRequest second = Give(Prompt(40, 2));
  EXPECT_EQ(second.group, 1);
  Answer(first, 10);
  Answer(second, 10);
  choice_->Remove(first);
  choice_->Remove(second);
  // Group 0 is next in turn.
  const GivenRequest again = Give(Prompt(60, 2));
  EXPECT_EQ(again.group, 1);
  EXPECT_EQ(again.prefill, 60 - 40);
  EXPECT_EQ(choice_->load(1), 20 + 10 + 60 / 8);
  // Its beginning lies in group 1, which has more to do than that saves.
  EXPECT_EQ(GroupFor(Prompt(24, 2)), 0);
  // One token of a known prompt is left to compute.
  EXPECT_EQ(Give(Prompt(40, 1)).prefill, 4);
}

TEST_F(GroupChoiceTest, APrefixThatIsBeingComputedCountsAsKnown) {
  Begin(Policy::kBalanced, 2);
  Give(Prompt(40, 1, 1));
  Give(Prompt(41, 2, 1));
  EXPECT_EQ(Give(Prompt(44, 2, 1)).group, 1);
}

TEST_F(GroupChoiceTest, OtherSaltsShareNothing) {
  Begin(Policy::kBalanced, 2);
  Sequence s = Prompt(40, 1);
  s.spec.salt = "a";
  GivenRequest given = Give(s);
  Answer(given, 1);
  choice_->Remove(given);
  EXPECT_EQ(Choose(s)->known, 9);
  for (const char* other : {"b", ""}) {
    s.spec.salt = other;
    EXPECT_EQ(Choose(s)->known, 0) << other;
    EXPECT_EQ(Choose(s)->group, 1) << "the next in turn";
  }
}

TEST_F(GroupChoiceTest, APromptWithLogprobsIsComputedWhole) {
  Begin(Policy::kBalanced, 1);
  Sequence s = Prompt(40, 1);
  Give(s);
  EXPECT_EQ(Choose(s)->prefill, 4);
  s.spec.reuses_prefix = false;
  EXPECT_EQ(Choose(s)->prefill, 40);
}

TEST_F(GroupChoiceTest, WithoutAPrefixCacheNothingIsKnown) {
  Begin(Policy::kBalanced, 1, 0);
  Give(Prompt(40, 1));
  EXPECT_EQ(Choose(Prompt(40, 1))->prefill, 40);
}

// Reports are of the last step: requests that were given since count already.
TEST_F(GroupChoiceTest, WhatWasGivenSinceTheLastReportCounts) {
  Begin(Policy::kBalanced, 2);
  GivenRequest early = Give(Prompt(100, 1));
  EXPECT_EQ(early.group, 0);
  EXPECT_EQ(Give(Prompt(30, 2)).group, 1);
  EXPECT_EQ(Give(Prompt(30, 3)).group, 1);
  choice_->Prefills(early, 50);  // of a step that had not heard of the others
  EXPECT_EQ(choice_->load(0), 50 + 10 + 100 / 8);
  EXPECT_EQ(choice_->load(1), 2 * (30 + 10 + 30 / 8));
  EXPECT_EQ(GroupFor(Prompt(30, 4)), 0);
}

TEST_F(GroupChoiceTest, ReportsReplaceWhatWasExpected) {
  Begin(Policy::kBalanced, 1);
  GivenRequest first = Give(Prompt(40, 1));
  GivenRequest again = Give(Prompt(40, 1));
  EXPECT_EQ(again.prefill, 4);
  choice_->Prefills(again, 40);  // its pages had left the cache
  EXPECT_EQ(choice_->load(0), 2 * (40 + 10 + 40 / 8));
  choice_->Prefills(again, 8);
  Answer(again, 1);
  EXPECT_EQ(choice_->load(0), 55 + (0 + 9 + 41 / 8));
  choice_->Prefills(again, 41);  // it was preempted
  EXPECT_EQ(choice_->load(0), 55 + (41 + 9 + 41 / 8));
  Answer(again, 9);
  choice_->Remove(again);
  choice_->Remove(first);
  EXPECT_EQ(choice_->load(0), 0);
}

TEST_F(GroupChoiceTest, AFullGroupGetsNothing) {
  for (const Policy policy : {Policy::kBalanced, Policy::kTokens, Policy::kRoundRobin}) {
    Begin(policy, 3);
    full_ = {0};
    EXPECT_EQ(Give(Prompt(5, 1)).group, 1);
    EXPECT_EQ(Give(Prompt(5, 2)).group, 2);
    EXPECT_EQ(Give(Prompt(5, 3)).group, 1);
    full_ = {0, 1, 2};
    EXPECT_FALSE(Choose(Prompt(5, 4)));
    full_ = {};
    EXPECT_EQ(Give(Prompt(5, 5)).group, policy == Policy::kRoundRobin ? 2 : 0);
  }
}

TEST_F(GroupChoiceTest, ACancelledRequestLeavesNothingBehind) {
  Begin(Policy::kBalanced, 1);
  GivenRequest known = Give(Prompt(20, 1));
  Answer(known, 1);
  choice_->Remove(known);
  const GivenRequest cancelled = Give(Prompt(40, 1));
  EXPECT_EQ(cancelled.prefill, 20);
  choice_->Remove(cancelled);  // before a token
  EXPECT_EQ(choice_->load(0), 0);
  EXPECT_EQ(Choose(Prompt(40, 1))->prefill, 20) << "or its pages count as computed";
  EXPECT_EQ(Choose(Prompt(20, 1))->prefill, 4);
}

TEST_F(GroupChoiceTest, APageThatAnotherRequestComputedIsKnownAgain) {
  Begin(Policy::kBalanced, 1);
  const GivenRequest cancelled = Give(Prompt(40, 1));
  GivenRequest other = Give(Prompt(40, 1));
  choice_->Remove(cancelled);
  EXPECT_EQ(Choose(Prompt(44, 1))->prefill, 44);
  Answer(other, 1);
  EXPECT_EQ(Choose(Prompt(44, 1))->prefill, 4);
}

TEST_F(GroupChoiceTest, ALaterPromptMayBeginWithAnAnswer) {
  Sequence next = Prompt(8, 1);
  for (int32_t i = 0; i < 12; ++i) next.tokens.push_back(-i);
  next.spec.max_len = next.length() + 10;
  for (const bool shared : {true, false}) {
    Begin(Policy::kBalanced, 1, 100, shared);
    GivenRequest first = Give(Prompt(8, 1));
    Answer(first, 10);
    choice_->Remove(first);
    EXPECT_EQ(Choose(next)->prefill, shared ? 20 - 16 : 20 - 8);
  }
  Begin(Policy::kBalanced, 1);
  Sequence many = Prompt(8, 1);
  many.spec.outputs = 2;
  GivenRequest first = Give(many);
  EXPECT_EQ(first.expected, 2 * 10);
  Answer(first, 20);
  EXPECT_EQ(choice_->load(0), (8 + 20) / 8);
  choice_->Remove(first);
  EXPECT_EQ(Choose(next)->prefill, 20 - 8);
}

TEST_F(GroupChoiceTest, ALimitOfAnAnswerIsNoLength) {
  Begin(Policy::kBalanced, 1);
  GivenRequest given = Give(Prompt(8, 1, 100'000));
  EXPECT_EQ(given.expected, kExpectedAnswer);
  Answer(given, kExpectedAnswer + 3);
  EXPECT_EQ(choice_->load(0), (8 + kExpectedAnswer + 3) / 8);
}

TEST_F(GroupChoiceTest, TokensChoosesTheGroupWithTheFewest) {
  Begin(Policy::kTokens, 3);
  GivenRequest first = Give(Prompt(10, 1));
  EXPECT_EQ(first.group, 0);
  EXPECT_EQ(Give(Prompt(5, 2)).group, 1);
  GivenRequest third = Give(Prompt(7, 3));
  EXPECT_EQ(third.group, 2);
  EXPECT_EQ(Give(Prompt(20, 4)).group, 1);
  Answer(third, 2);
  EXPECT_EQ(choice_->load(2), 9);
  EXPECT_EQ(GroupFor(Prompt(5, 5)), 2);
  Answer(third, 2);
  EXPECT_EQ(GroupFor(Prompt(5, 5)), 0);
  choice_->Remove(third);
  EXPECT_EQ(choice_->load(2), 0);
}

TEST(PrefixTable, PagesBeyondTheMostLeaveByTheirLastUse) {
  PrefixTable table(4);
  const std::vector<uint64_t> a = {1, 2, 3};
  const std::vector<uint64_t> b = {7, 8};
  for (int i = 0; i < 3; ++i) table.Use(b);
  EXPECT_EQ(table.size(), 2);
  table.Use(a);
  table.Use(b);
  EXPECT_EQ(table.size(), 4);
  EXPECT_EQ(table.Known(a), 2) << "the last page of a text leaves first";
  EXPECT_EQ(table.Known(b), 2);
  table.Use(a);
  EXPECT_EQ(table.Known(a), 3);
  EXPECT_EQ(table.Known(b), 1);
  table.Forget(std::span(a).first(1));
  EXPECT_EQ(table.Known(a), 0) << "no page without those before it";
  EXPECT_EQ(table.size(), 3);
}

TEST(PageHashes, DependOnSaltAndAllTokensBefore) {
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 1, 2, 3, 4, 5};
  const auto hashes = [&](std::string_view salt, size_t first) {
    PageHashes out(salt, kPage);
    out.Append(std::span(tokens).first(first));
    out.Append(std::span(tokens).subspan(first));
    return std::vector<uint64_t>(out.all().begin(), out.all().end());
  };
  const std::vector<uint64_t> whole = hashes("", tokens.size());
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_NE(whole[0], whole[1]);
  for (size_t first = 0; first <= tokens.size(); ++first) EXPECT_EQ(hashes("", first), whole);
  EXPECT_NE(hashes("x", 0)[0], whole[0]);
  EXPECT_NE(hashes("x", 0)[1], whole[1]);
}

}  // namespace
}  // namespace latte::group_choice_test
