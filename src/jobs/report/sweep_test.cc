#include "src/jobs/report/sweep.h"

#include <gtest/gtest.h>

#include "src/base/json_out.h"

namespace latte::sweep_test {
namespace {

TEST(Sweep, Rates) {
  EXPECT_EQ(*ParseSweep("1,2.5,10"), (std::vector<double>{1, 2.5, 10}));
  EXPECT_EQ(*ParseSweep("4"), (std::vector<double>{4}));
  std::string many = "1";
  for (int i = 0; i < 35; ++i) many += ",1";
  for (const std::string& text :
       {std::string(), std::string(","), std::string("1,"), std::string("0"), std::string("-1"),
        std::string("1,x"), std::string("inf"), std::string("1 2"), many})
    EXPECT_EQ(ParseSweep(text).error().code, Code::kInvalidArgument) << text;
}

TEST(Sweep, RowsAndMarks) {
  const JsonOut reports = {
      {{"t", 100.0}, {"a", 5.0}, {"b", 9.0}, {"c", 2.0}, {"d", 3.0}},
      {{"t", 200.0}, {"a", 50.0}, {"b", 90.0}, {"c", nullptr}, {"d", nullptr}},
  };
  const std::string text = SweepTable({1, 2}, reports, {"t", "a", "b", "c", "d"});
  EXPECT_NE(text.find("  1           1       100        5     9        2    3\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  2           2       200       50    90        -    -\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("     90 │" + std::string(59, ' ') + "2\n"), std::string::npos) << text;
  // One value of the gaps is missing.
  EXPECT_NE(text.find("      3 │" + std::string(59, ' ') + "1\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace latte::sweep_test
