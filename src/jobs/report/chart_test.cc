#include "src/jobs/report/chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace latte::chart_test {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (c == '\n')
      out.emplace_back();
    else
      out.back() += c;
  out.pop_back();
  return out;
}

TEST(Chart, AxesBeginAtZeroAndEndAtTheLargestValues) {
  const ChartPoint points[] = {{0, 0, '1'}, {59, 11, '2'}, {10, 5, '3'}};
  const std::vector<std::string> lines = Lines(Chart(points, "requests/s", "ms"));
  ASSERT_EQ(lines.size(), 15U);
  EXPECT_EQ(lines[0], "        ms");
  EXPECT_EQ(lines[1], "     11 │" + std::string(59, ' ') + "2");
  EXPECT_EQ(lines[7], "        │" + std::string(10, ' ') + "3");
  EXPECT_EQ(lines[12], "      0 │1");
  EXPECT_TRUE(lines[13].starts_with("        └───"));
  EXPECT_TRUE(lines[14].starts_with("         0 "));
  EXPECT_NE(lines[14].find("requests/s"), std::string::npos);
  EXPECT_TRUE(lines[14].ends_with(" 59"));
}

TEST(Chart, PointsThatHaveNoPlaceAreLeftOut) {
  const ChartPoint none[] = {{NAN, 1, 'a'}, {1, INFINITY, 'b'}, {-1, 1, 'c'}};
  EXPECT_EQ(Chart(none, "x", "y"), "");
  const ChartPoint some[] = {{NAN, 1, 'a'}, {2, 3, 'b'}, {2, 3, 'c'}};
  const std::string text = Chart(some, "x", "y");
  EXPECT_EQ(text.find('a'), std::string::npos);
  EXPECT_EQ(text.find('b'), std::string::npos);  // c lies on it
  EXPECT_NE(text.find('c'), std::string::npos);
}

TEST(Chart, AllZeroIsAPointInTheCorner) {
  const ChartPoint zero[] = {{0, 0, '1'}};
  const std::vector<std::string> lines = Lines(Chart(zero, "x", "y"));
  EXPECT_TRUE(std::ranges::any_of(lines, [](auto& line) { return line.ends_with("│1"); }));
}

}  // namespace
}  // namespace latte::chart_test
