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
  EXPECT_FALSE(manager.CanReserve(1));
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

}  // namespace
}  // namespace latte::cache_manager_test
