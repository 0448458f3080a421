#include "src/jobs/job_progress.h"

#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace latte {
namespace {

TEST(MeasuredSteps, CountsWhatHasEnded) {
  std::vector<std::string> seen;
  const JobProgress show = [&](int64_t done, int64_t total, std::string_view now) {
    seen.push_back(fmt::format("{}/{} {}", done, total, now));
  };
  MeasuredSteps steps(show, 5);
  steps.Begin("a");
  steps.Begin("b", 4);
  steps.Within(3);
  steps.End();
  EXPECT_EQ(seen, (std::vector<std::string>{"0/5 preparing", "0/5 a", "1/5 b", "4/5 b", "5/5 "}));
}

TEST(MeasuredSteps, NeedNoOneWhoWatches) {
  const JobProgress none;
  MeasuredSteps steps(none, 1);
  steps.Begin("a");
  steps.End();
}

}  // namespace
}  // namespace latte
