#include "src/jobs/job_progress.h"

#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace latte::job_progress_test {
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

// A first step may take long: progress ticks until something is timed.
TEST(MeasuredSteps, PrepareUntilTheFirstStepThatIsTimed) {
  std::vector<std::string> seen;
  const JobProgress show = [&](int64_t done, int64_t total, std::string_view now) {
    seen.push_back(fmt::format("{}/{} {}", done, total, now));
  };
  MeasuredSteps steps(show, 4);
  steps.WarmUp("warm");
  steps.Begin("a");
  steps.WarmUp("warm");
  steps.Begin("b");
  steps.End();
  EXPECT_EQ(seen,
            (std::vector<std::string>{"0/4 preparing", "1/4 a", "2/4 warm", "3/4 b", "4/4 "}));
}

TEST(MeasuredSteps, NeedNoOneWhoWatches) {
  const JobProgress none;
  MeasuredSteps steps(none, 1);
  steps.Begin("a");
  steps.End();
}

}  // namespace
}  // namespace latte::job_progress_test
