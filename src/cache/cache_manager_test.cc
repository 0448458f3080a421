#include "src/cache/cache_manager.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace latte::cache_manager_test {
namespace {

using Tokens = std::vector<int32_t>;
using Pages = std::vector<int32_t>;

CacheManager Manager(int64_t pages, bool save_evicted = false) {
  return CacheManager({.pages = pages, .page_tokens = 2, .save_evicted = save_evicted});
}

// Computes the tokens in pages of their own, makes them findable and leaves.
Pages Remember(CacheManager& manager, std::string_view salt, const Tokens& tokens) {
  Pages pages;
  EXPECT_TRUE(manager.Reserve(pages, std::ssize(tokens)));
  manager.Insert(salt, tokens, pages);
  const Pages kept = pages;
  manager.Release(pages);
  return kept;
}

TEST(CacheManager, KnownBeginningIsSharedAndOneTokenIsLeft) {
  CacheManager manager = Manager(8);
  const Pages kept = Remember(manager, "", {1, 2, 3, 4});
  EXPECT_EQ(manager.MatchedPages("", Tokens{1, 2, 3, 4}), 1);
  EXPECT_EQ(manager.MatchedPages("", Tokens{}), 0);
  Pages all = manager.Match("", Tokens{1, 2, 3, 4, 5});
  EXPECT_EQ(all, kept);
  EXPECT_EQ(manager.used_pages(), 2);
  EXPECT_EQ(manager.cached_pages(), 0);
  EXPECT_TRUE(manager.Reserve(all, 5));
  EXPECT_EQ(all.size(), 3u);
  manager.Release(all);
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(manager.used_pages(), 0);
  EXPECT_EQ(manager.cached_pages(), 2);
  EXPECT_EQ(manager.free_pages(), 6);
}

TEST(CacheManager, NothingIsFoundUnderAnotherSalt) {
  CacheManager manager = Manager(8);
  Remember(manager, "a", {1, 2, 3, 4});
  EXPECT_EQ(manager.Match("b", Tokens{1, 2, 3, 4, 5}), Pages{});
  EXPECT_EQ(manager.MatchedPages("a", Tokens{1, 2, 3, 4, 5}), 2);
}

TEST(CacheManager, WithoutPrefixCacheNothingIsKept) {
  CacheManager manager({.pages = 4, .page_tokens = 2, .prefix_cache = false});
  Remember(manager, "", {1, 2, 3, 4});
  EXPECT_EQ(manager.MatchedPages("", Tokens{1, 2, 3}), 0);
  EXPECT_EQ(manager.free_pages(), 4);
}

TEST(CacheManager, ReserveEvictsTheLeastRecentlyUsedAndNeverWhatIsInUse) {
  CacheManager manager = Manager(4);
  Remember(manager, "", {1, 2});
  Remember(manager, "", {3, 4});
  Pages first = manager.Match("", Tokens{1, 2, 9});
  manager.Release(first);
  Pages pages;
  ASSERT_TRUE(manager.Reserve(pages, 6));
  EXPECT_EQ(manager.MatchedPages("", Tokens{3, 4, 9}), 0);
  EXPECT_EQ(manager.MatchedPages("", Tokens{1, 2, 9}), 1);
  Pages used = manager.Match("", Tokens{1, 2, 9});
  EXPECT_FALSE(manager.CanReserve(0, 1));
  const Status full = manager.Reserve(pages, 8);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kExhausted);
  EXPECT_NE(full.error().message.find("room for 0 more pages"), std::string::npos);
  EXPECT_EQ(pages.size(), 3u);
  EXPECT_EQ(manager.MatchedPages("", Tokens{1, 2, 9}), 1);
}

TEST(CacheManager, WhatCannotBeReservedEvictsNothing) {
  CacheManager manager = Manager(2);
  Remember(manager, "", {1, 2});
  Pages pages;
  EXPECT_FALSE(manager.Reserve(pages, 6));
  EXPECT_EQ(manager.cached_pages(), 1);
  EXPECT_TRUE(pages.empty());
}

TEST(CacheManager, OwnCopyOfKnownTokensIsGivenBackAndItsSuccessorHoldsTheTree) {
  CacheManager manager = Manager(4);
  const Pages kept = Remember(manager, "", {1, 2});
  Pages own;
  ASSERT_TRUE(manager.Reserve(own, 4));
  manager.Insert("", Tokens{1, 2, 3, 4}, own);
  // The page of [1 2] has no user, but the page after it has one.
  EXPECT_EQ(manager.cached_pages(), 1);
  EXPECT_EQ(manager.free_pages(), 1);
  EXPECT_EQ(manager.available_pages(), 1);
  EXPECT_EQ(manager.used_pages(), 2);
  const int32_t successor = own[1];
  manager.Release(own);
  EXPECT_EQ(manager.free_pages(), 2);
  EXPECT_EQ(manager.available_pages(), 4);
  EXPECT_EQ(manager.Match("", Tokens{1, 2, 3, 4, 5}), (Pages{kept[0], successor}));
}

TEST(CacheManager, PageThatOthersUseIsCopiedBeforeItIsWritten) {
  CacheManager manager = Manager(4);
  Pages one;
  ASSERT_TRUE(manager.Reserve(one, 3));
  manager.Share(one);
  Pages two = one;
  ASSERT_TRUE(manager.MakeWritable(two, 3));
  EXPECT_EQ(two[0], one[0]);
  EXPECT_NE(two[1], one[1]);
  const std::vector<PageOp> ops = manager.TakeOps();
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].kind, PageOp::Kind::kCopy);
  EXPECT_EQ(ops[0].from, one[1]);
  EXPECT_EQ(ops[0].to, two[1]);
  EXPECT_TRUE(manager.TakeOps().empty());
  // Each is the only user of its last page now.
  ASSERT_TRUE(manager.MakeWritable(one, 3));
  ASSERT_TRUE(manager.MakeWritable(two, 3));
  EXPECT_TRUE(manager.TakeOps().empty());
  manager.Release(one);
  manager.Release(two);
  EXPECT_EQ(manager.free_pages(), 4);
}

TEST(CacheManager, PageOfTheTreeIsCopiedBeforeItIsWritten) {
  CacheManager manager = Manager(3);
  const Pages kept = Remember(manager, "", {1, 2});
  Pages pages = manager.Match("", Tokens{1, 2, 3});
  ASSERT_TRUE(manager.MakeWritable(pages, 1));
  EXPECT_NE(pages[0], kept[0]);
  EXPECT_EQ(manager.cached_pages(), 1);
}

TEST(CacheManager, CopyWithoutRoomIsAnErrorAndChangesNothing) {
  CacheManager manager = Manager(1);
  Pages one;
  ASSERT_TRUE(manager.Reserve(one, 1));
  manager.Share(one);
  Pages two = one;
  EXPECT_EQ(manager.MakeWritable(two, 1).error().code, Code::kExhausted);
  EXPECT_EQ(two, one);
  EXPECT_TRUE(manager.TakeOps().empty());
}

TEST(CacheManager, EvictedPageIsSavedWithAllThatItDependsOn) {
  CacheManager manager = Manager(2, /*save_evicted=*/true);
  const Pages kept = Remember(manager, "salt", {1, 2, 3, 4});
  Pages pages;
  ASSERT_TRUE(manager.Reserve(pages, 3));
  std::vector<PageOp> ops = manager.TakeOps();
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].kind, PageOp::Kind::kSave);
  EXPECT_EQ(ops[0].from, kept[1]);
  EXPECT_EQ(ops[0].prefix, (PagePrefix{"salt", {1, 2, 3, 4}}));
  EXPECT_EQ(ops[1].from, kept[0]);
  EXPECT_EQ(ops[1].prefix, (PagePrefix{"salt", {1, 2}}));
}

TEST(CacheManager, EvictAllLeavesWhatIsInUse) {
  CacheManager manager = Manager(6, /*save_evicted=*/true);
  Remember(manager, "", {1, 2, 3, 4});
  Remember(manager, "", {5, 6});
  Pages used = manager.Match("", Tokens{1, 2, 9});
  EXPECT_EQ(manager.Evict(1), 1);
  EXPECT_EQ(manager.TakeOps().size(), 1u);
  manager.EvictAll();
  EXPECT_EQ(manager.TakeOps().size(), 1u);
  EXPECT_EQ(manager.cached_pages(), 0);
  EXPECT_EQ(manager.used_pages(), 1);
  EXPECT_EQ(manager.free_pages(), 5);
}

// Four pages per split, so the owner changes every four pages.
CacheManager Divided(int64_t pages_of_each, int64_t owners) {
  return CacheManager({.pages = pages_of_each * owners, .page_tokens = 256, .owners = owners});
}

Tokens Text(int64_t count, int32_t first) {
  Tokens out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = first + static_cast<int32_t>(i);
  return out;
}

TEST(PageOwners, SplitsGoRoundTheOwners) {
  const PageOwners owners{3, 256};
  std::vector<int64_t> got;
  for (int64_t i = 0; i < 16; ++i) got.push_back(owners.OwnerAt(i));
  EXPECT_EQ(got, (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0}));
  for (int64_t pages = 0; pages < 40; ++pages)
    for (int64_t owner = 0; owner < 3; ++owner) {
      int64_t count = 0;
      for (int64_t i = 0; i < pages; ++i) count += owners.OwnerAt(i) == owner ? 1 : 0;
      EXPECT_EQ(owners.PagesOf(owner, pages), count) << pages << " pages, owner " << owner;
    }
  for (int64_t each = 0; each < 20; ++each) {
    const int64_t most = owners.MostPages(each);
    EXPECT_EQ(owners.PagesOf(0, most), each);
    EXPECT_GT(owners.PagesOf(0, most + 1), each);
  }
}

TEST(CacheManager, PagesAreOfTheOwnerOfTheirPlace) {
  CacheManager manager = Divided(10, 2);
  const PageOwners owners{2, 256};
  Pages pages;
  ASSERT_TRUE(manager.Reserve(pages, 256));
  ASSERT_TRUE(manager.Reserve(pages, 11 * 256));
  ASSERT_EQ(pages.size(), 11U);
  for (int64_t i = 0; i < 11; ++i)
    EXPECT_EQ(owners.OwnerOf(pages[static_cast<size_t>(i)]), owners.OwnerAt(i));
  // A copy lies with its original.
  Pages fork = pages;
  manager.Share(fork);
  for (const int64_t page : {1, 5, 10}) {
    ASSERT_TRUE(manager.MakeWritable(fork, page * 256));
    const auto at = static_cast<size_t>(page);
    EXPECT_NE(fork[at], pages[at]);
    EXPECT_EQ(owners.OwnerOf(fork[at]), owners.OwnerAt(page));
  }
}

TEST(CacheManager, WhatOneOwnerLacksIsNotTakenFromOthers) {
  CacheManager manager = Divided(4, 2);
  EXPECT_TRUE(manager.Holds(8 * 256));
  EXPECT_FALSE(manager.Holds(8 * 256 + 1));
  Pages first, second;
  ASSERT_TRUE(manager.Reserve(first, 3 * 256));  // of owner 0
  EXPECT_TRUE(manager.CanReserve(0, 1));
  EXPECT_FALSE(manager.CanReserve(0, 1, 1));
  EXPECT_FALSE(manager.CanReserve(0, 2));
  EXPECT_TRUE(manager.CanReserve(4, 4));
  EXPECT_FALSE(manager.Reserve(second, 2 * 256));
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(manager.free_pages(), 5);
  EXPECT_TRUE(manager.Reserve(second, 256));
  manager.Share(first);
  EXPECT_FALSE(manager.MakeWritable(first, 0));
}

TEST(CacheManager, PrefixesLeaveUntilTheOwnerHasAPage) {
  CacheManager manager = Divided(4, 2);
  // Two prompts of one split, which is owner 0's: the older, then one with a second page of owner
  // 1.
  const Tokens old = Text(2 * 256, 0);
  Pages pages;
  ASSERT_TRUE(manager.Reserve(pages, std::ssize(old)));
  manager.Insert("", old, pages);
  manager.Release(pages);
  Pages running;
  ASSERT_TRUE(manager.Reserve(running, 2 * 256));
  EXPECT_TRUE(manager.CanReserve(0, 2));
  Pages more;
  ASSERT_TRUE(manager.Reserve(more, 256));
  EXPECT_EQ(manager.MatchedPages("", Text(3 * 256, 0)), 1);  // the last page went first
  ASSERT_TRUE(manager.Reserve(more, 2 * 256));
  EXPECT_EQ(manager.MatchedPages("", Text(3 * 256, 0)), 0);
  EXPECT_FALSE(manager.CanReserve(2, 1));
  EXPECT_TRUE(manager.CanReserve(4, 4));  // owner 1 has all of its pages
}

TEST(CacheManager, LendsWhatIsNotInUseAndLeavesTheRestToTheBorrower) {
  CacheManager manager = Manager(8);
  Remember(manager, "", {1, 2, 3, 4});  // two pages that a prompt may begin with
  Pages used;
  ASSERT_TRUE(manager.Reserve(used, 6));
  EXPECT_EQ(manager.Lend(2, 4).size(), 1U) << "four of five are kept";
  EXPECT_EQ(manager.Lend(1).size(), 1U);
  EXPECT_EQ(manager.MatchedPages("", Tokens{1, 2, 3, 4, 5}), 2) << "free pages go first";
  EXPECT_EQ(manager.Lend(4).size(), 3U);
  EXPECT_EQ(manager.MatchedPages("", Tokens{1, 2, 3, 4, 5}), 0);
  EXPECT_EQ(manager.used_pages(), 8);
  // The fourth page is promised: a new sequence does not get it.
  Pages last = {used.back()};
  used.pop_back();
  manager.Release(last);
  EXPECT_FALSE(manager.CanReserve(0, 1));
  Pages lent = manager.Lend(1);
  ASSERT_EQ(lent.size(), 1U);
  EXPECT_EQ(manager.free_pages(), 0);
  manager.TakeBack(lent);
  EXPECT_TRUE(manager.CanReserve(0, 1));
  EXPECT_EQ(manager.used_pages(), 7);
}

TEST(CacheManager, BorrowsPagesOfEachOwnerAndGivesThemBack) {
  CacheManager manager({.pages = 8, .page_tokens = 1024, .owners = 2, .lent = true});
  EXPECT_TRUE(manager.Holds(8 * 1024)) << "if all is lent";
  EXPECT_FALSE(manager.CanReserve(0, 1));
  EXPECT_EQ(manager.used_pages(), 0);
  manager.Borrow(0, Pages{3, 1});
  manager.Borrow(1, Pages{2});
  EXPECT_EQ(manager.borrowed(0), 2);
  const PageOwners owners{2, 1024};
  const Tokens text = Text(3 * 1024, 0);
  Pages pages;
  ASSERT_TRUE(manager.Reserve(pages, 3 * 1024));
  EXPECT_EQ(manager.used_pages(), 3);
  EXPECT_EQ(owners.PlaceOf(pages[1]), 2);
  EXPECT_TRUE(manager.GiveBack(0, 1).empty()) << "all are in use";
  manager.Insert("", text, pages);
  manager.Release(pages);
  // The last page leaves the tree before the one that is wanted.
  EXPECT_EQ(manager.GiveBack(1, 5), Pages{2});
  EXPECT_EQ(manager.borrowed(1), 0);
  EXPECT_EQ(manager.MatchedPages("", Text(4 * 1024, 0)), 1);
  Pages rest = manager.GiveBack(0, 2);
  std::ranges::sort(rest);
  EXPECT_EQ(rest, (Pages{1, 3}));
  EXPECT_EQ(manager.free_pages() + manager.used_pages() + manager.cached_pages(), 0);
}

}  // namespace
}  // namespace latte::cache_manager_test
