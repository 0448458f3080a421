#include "src/base/fields/suggest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace latte::suggest_test {
namespace {

const std::vector<std::string> kNames = {"run", "chat", "batch", "bench", "--prompt", "--top-p"};

TEST(Suggest, OneCharacterOrTwoNeighboursDiffer) {
  EXPECT_EQ(Closest("rum", kNames), "run");       // different
  EXPECT_EQ(Closest("cha", kNames), "chat");      // missing
  EXPECT_EQ(Closest("batchh", kNames), "batch");  // superfluous
  EXPECT_EQ(Closest("rnu", kNames), "run");       // swapped
  EXPECT_EQ(Closest("--promt", kNames), "--prompt");
}

TEST(Suggest, NearerNameGoesFirst) {
  EXPECT_EQ(Closest("bench", kNames), "bench");
  EXPECT_EQ(Closest("benhc", kNames), "bench");
  EXPECT_EQ(Closest("abc", std::vector<std::string>{"abd", "abe"}), "abd");  // the first of equals
}

TEST(Suggest, AtMostAThirdDiffers) {
  EXPECT_EQ(Closest("abcdxx", std::vector<std::string>{"abcdef"}), "abcdef");
  EXPECT_EQ(Closest("abcxxx", std::vector<std::string>{"abcdef"}), std::nullopt);
  EXPECT_EQ(Closest("help", kNames), std::nullopt);
}

TEST(Suggest, NothingIsNearToNothingOrToOneCharacter) {
  EXPECT_EQ(Closest("", kNames), std::nullopt);
  EXPECT_EQ(Closest("x", std::vector<std::string>{"", "y"}), std::nullopt);
  EXPECT_EQ(Closest("run", {}), std::nullopt);
}

TEST(Suggest, LongWordsAreNotCompared) {
  EXPECT_EQ(Closest(std::string(1 << 20, 'r'), kNames), std::nullopt);
}

TEST(Suggest, SentenceForMessages) {
  EXPECT_EQ(DidYouMean("rum", kNames), "; did you mean run?");
  EXPECT_EQ(DidYouMean("zzz", kNames), "");
}

}  // namespace
}  // namespace latte::suggest_test
