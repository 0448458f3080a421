#include "src/base/draw/bar.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace latte::bar_test {
namespace {

TEST(Bar, HasEighthsOfAColumn) {
  EXPECT_EQ(Bar(0, 4), "");
  EXPECT_EQ(Bar(0.5, 4), "██");
  EXPECT_EQ(Bar(1, 4), "████");
  EXPECT_EQ(Bar(1.0 / 32, 4), "▏");
  EXPECT_EQ(Bar(0.25 + 3.0 / 32, 4), "█▍");
  EXPECT_EQ(Bar(1e-9, 4), "▏");  // more than nothing shows
  EXPECT_EQ(Bar(7, 2), "██");
  EXPECT_EQ(Bar(-1, 2), "");
  EXPECT_EQ(Bar(std::nan(""), 2), "");
  EXPECT_EQ(Bar(std::numeric_limits<double>::infinity(), 2), "██");
  EXPECT_EQ(Bar(1, 0), "");
}

std::string Stacked(std::vector<double> amounts, int columns) {
  std::vector<BarPart> parts;
  for (const double amount : amounts) parts.push_back({amount, static_cast<BarFill>(parts.size())});
  return StackedBar(parts, columns);
}

TEST(StackedBar, FillsItsColumns) {
  EXPECT_EQ(Stacked({1, 1, 2}, 8), "██▓▓▒▒▒▒");
  EXPECT_EQ(Stacked({1, 0, 1}, 4), "██▒▒");
  EXPECT_EQ(Stacked({1, 1, 1}, 8), "██▓▓▓▒▒▒");
  EXPECT_EQ(Stacked({0, 0}, 3), "   ");
  EXPECT_EQ(Stacked({}, 2), "  ");
}

TEST(StackedBar, SmallPartsShow) {
  EXPECT_EQ(Stacked({1, 1000, 1, 1}, 8), "█▓▓▓▓▓▒░");
  EXPECT_EQ(Stacked({1, 1, 1}, 2), "█▓▒");  // more parts than columns: all are told apart
}

TEST(StackedBar, ColoursFollowTheFills) {
  EXPECT_EQ(WithBarColours("a ██▒ b█"), "a \x1b[34m██\x1b[0m\x1b[32m▒\x1b[0m b\x1b[34m█\x1b[0m");
  EXPECT_EQ(WithBarColours("plain é"), "plain é");
  EXPECT_EQ(WithBarColours(""), "");
}

}  // namespace
}  // namespace latte::bar_test
