#include "src/engine/speculate/lookup_drafter.h"

#include <gtest/gtest.h>

namespace latte::lookup_drafter_test {
namespace {

using Tokens = std::vector<int32_t>;

TEST(LookUp, TakesWhatFollowedTheLongestEqualEnd) {
  EXPECT_EQ(LookUp(Tokens{1, 2, 3, 9, 8, 4, 3, 7, 1, 2, 3}, 2), (Tokens{9, 8}));
  EXPECT_EQ(LookUp(Tokens{1, 2, 3, 4, 5, 9, 2, 3, 4, 6, 8, 3, 4}, 3), (Tokens{6, 8, 3}));
}

TEST(LookUp, OfEqualLengthTheLatest) {
  EXPECT_EQ(LookUp(Tokens{1, 2, 5, 1, 2, 6, 1, 2}, 1), (Tokens{6}));
}

TEST(LookUp, FourTokensAreEnough) {
  EXPECT_EQ(LookUp(Tokens{0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 6, 0, 1, 2, 3, 4}, 1), (Tokens{6}));
}

TEST(LookUp, ARunGoesOn) { EXPECT_EQ(LookUp(Tokens{7, 7, 7, 7}, 4), (Tokens{7})); }

TEST(LookUp, NothingWhereTwoTokensOccurOnce) {
  EXPECT_EQ(LookUp(Tokens{1, 2, 3, 2}, 4), Tokens());
  EXPECT_EQ(LookUp(Tokens{1}, 4), Tokens());
  EXPECT_EQ(LookUp(Tokens{1, 2}, 4), Tokens());
  EXPECT_EQ(LookUp(Tokens{1, 2, 1, 2}, 0), Tokens());
}

}  // namespace
}  // namespace latte::lookup_drafter_test
