#include "src/cache/radix_tree.h"

#include <numeric>

#include <gtest/gtest.h>

namespace latte::radix_tree_test {
namespace {

using Tokens = std::vector<int32_t>;
using Pages = std::vector<int32_t>;

constexpr int64_t kAll = 1 << 30;

TEST(RadixTree, SharedBeginningIsStoredOnce) {
  RadixTree tree(10, /*page_tokens=*/2);
  EXPECT_EQ(tree.Insert("", Tokens{1, 2, 3, 4}, Pages{5, 6}), (Pages{5, 6}));
  EXPECT_EQ(tree.Insert("", Tokens{1, 2, 3, 5}, Pages{7, 8}), (Pages{8}));
  EXPECT_EQ(tree.Match("", Tokens{1, 2, 3, 4}, kAll), (Pages{5, 6}));
  EXPECT_EQ(tree.Match("", Tokens{1, 2, 3, 5}, kAll), (Pages{5, 8}));
  EXPECT_EQ(tree.pages(), 3);
  EXPECT_FALSE(tree.Contains(7));
}

TEST(RadixTree, OnlyWholePagesMatch) {
  RadixTree tree(10, 4);
  tree.Insert("", Tokens{1, 2, 3, 4, 5, 6, 7, 8}, Pages{0, 1});
  EXPECT_EQ(tree.Match("", Tokens{1, 2, 3}, kAll), Pages{});
  EXPECT_EQ(tree.Match("", Tokens{1, 2, 3, 4, 5, 6, 7}, kAll), (Pages{0}));
  EXPECT_EQ(tree.Match("", Tokens{1, 2, 3, 4, 5, 6, 7, 9}, kAll), (Pages{0}));
  EXPECT_EQ(tree.Match("", Tokens{1, 2, 3, 4, 5, 6, 7, 8}, 1), (Pages{0}));
  // A page in the middle of a prompt is not found at its beginning.
  EXPECT_EQ(tree.Match("", Tokens{5, 6, 7, 8}, kAll), Pages{});
}

TEST(RadixTree, TokensOfOneHashAreToldApart) {
  RadixTree tree(10, 2, /*hash_mask=*/0);
  tree.Insert("a", Tokens{1, 2, 3, 4}, Pages{0, 1});
  tree.Insert("a", Tokens{5, 6, 3, 4}, Pages{2, 3});
  tree.Insert("b", Tokens{7, 8}, Pages{4});
  EXPECT_EQ(tree.Match("a", Tokens{1, 2, 3, 4}, kAll), (Pages{0, 1}));
  EXPECT_EQ(tree.Match("a", Tokens{5, 6, 3, 4}, kAll), (Pages{2, 3}));
  EXPECT_EQ(tree.Match("a", Tokens{3, 4}, kAll), Pages{});
  EXPECT_EQ(tree.Match("b", Tokens{1, 2}, kAll), Pages{});
}

TEST(RadixTree, SaltsDoNotSeeEachOther) {
  RadixTree tree(10, 2);
  tree.Insert("a", Tokens{1, 2, 3, 4}, Pages{0, 1});
  EXPECT_EQ(tree.Match("b", Tokens{1, 2, 3, 4}, kAll), Pages{});
  EXPECT_EQ(tree.Match("", Tokens{1, 2, 3, 4}, kAll), Pages{});
  EXPECT_EQ(tree.Insert("b", Tokens{1, 2, 3, 4}, Pages{2, 3}), (Pages{2, 3}));
  EXPECT_EQ(tree.Match("a", Tokens{1, 2, 3, 4}, kAll), (Pages{0, 1}));
  EXPECT_EQ(tree.Match("b", Tokens{1, 2, 3, 4}, kAll), (Pages{2, 3}));
  EXPECT_EQ(tree.PrefixOf(3), (PagePrefix{"b", {1, 2, 3, 4}}));
}

TEST(RadixTree, SaltWithoutPagesIsForgotten) {
  RadixTree tree(10, 2);
  tree.Insert("a", Tokens{1, 2}, Pages{0});
  tree.SetUsed(0, false);
  tree.Remove(0);
  EXPECT_EQ(tree.salts(), 0);
  EXPECT_EQ(tree.pages(), 0);
  EXPECT_EQ(tree.Match("a", Tokens{1, 2}, kAll), Pages{});
}

TEST(RadixTree, OldestLeafGoesFirstAndUsedOnesStay) {
  RadixTree tree(10, 1);
  tree.Insert("", Tokens{1, 2}, Pages{0, 1});  // 1 ─┬─ 2
  tree.Insert("", Tokens{1, 3}, Pages{9, 2});  //    └─ 3
  tree.Insert("", Tokens{4}, Pages{3});
  EXPECT_EQ(tree.Oldest(), -1);
  for (const int32_t page : {3, 0, 2}) tree.SetUsed(page, false);
  EXPECT_EQ(tree.Oldest(), 3);
  tree.Remove(3);
  EXPECT_EQ(tree.Oldest(), 2);
  tree.Remove(2);
  EXPECT_EQ(tree.Oldest(), -1);  // page 0 has no user, but its successor has
  EXPECT_EQ(tree.unused_pages(), 1);
  EXPECT_EQ(tree.evictable_pages(), 0);
  tree.SetUsed(1, false);
  EXPECT_EQ(tree.evictable_pages(), 2);
  EXPECT_EQ(tree.Oldest(), 1);
  tree.Remove(1);
  EXPECT_EQ(tree.Oldest(), 0);
}

TEST(RadixTree, EndOfUseIsWhatCounts) {
  RadixTree tree(10, 1);
  tree.Insert("", Tokens{1}, Pages{0});
  tree.Insert("", Tokens{2}, Pages{1});
  tree.SetUsed(0, false);
  tree.SetUsed(1, false);
  tree.SetUsed(0, true);
  tree.SetUsed(0, false);
  EXPECT_EQ(tree.Oldest(), 1);
  // Who computes known tokens once more uses them too.
  tree.Insert("", Tokens{2}, Pages{5});
  EXPECT_EQ(tree.Oldest(), 0);
}

TEST(RadixTree, SuccessorOfAnUnusedPageHoldsIt) {
  RadixTree tree(10, 1);
  tree.Insert("", Tokens{1}, Pages{0});
  tree.SetUsed(0, false);
  EXPECT_EQ(tree.Oldest(), 0);
  tree.Insert("", Tokens{1, 2}, Pages{8, 1});  // computed 1 in a page of its own
  EXPECT_EQ(tree.Oldest(), -1);
  EXPECT_EQ(tree.evictable_pages(), 0);
  EXPECT_EQ(tree.unused_pages(), 1);
}

TEST(RadixTree, PromptOfManyPages) {
  constexpr int32_t kPages = 300'000;
  RadixTree tree(kPages, 1);
  Tokens tokens(kPages);
  std::iota(tokens.begin(), tokens.end(), 7);
  Pages pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  tree.Insert("", tokens, pages);
  EXPECT_EQ(tree.Match("", tokens, kAll).size(), tokens.size());
  for (const int32_t page : pages) tree.SetUsed(page, false);
  EXPECT_EQ(tree.evictable_pages(), kPages);
  EXPECT_EQ(tree.PrefixOf(kPages - 1).tokens, tokens);
  while (tree.Oldest() >= 0) tree.Remove(tree.Oldest());
  EXPECT_EQ(tree.pages(), 0);
}

}  // namespace
}  // namespace latte::radix_tree_test
