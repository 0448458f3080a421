// What holds for every schedule, over thousands of random ones.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/support/schedule_run.h"

namespace latte::scheduler_property_test {
namespace {

using testing_support::ScheduleCounts;
using testing_support::ScheduleRun;

TEST(SchedulerProperty, RandomSchedules) {
  ScheduleCounts sum;
  rc::detail::TestMetadata about;
  about.description = "claims of tests/support/schedule_run.h";
  rc::detail::TestParams params;
  params.seed = 20;  // a failure comes back
  params.maxSuccess = 12'000;
  params.maxSize = 400;
  const auto result = rc::detail::checkTestable(
      [&sum](const std::vector<uint8_t>& bytes) {
        ScheduleRun run(bytes);
        const std::string problem = run.Run();
        if (!problem.empty()) RC_FAIL(problem);
        sum.steps += run.counts().steps;
        sum.forks += run.counts().forks;
        sum.preemptions += run.counts().preemptions;
        sum.loads += run.counts().loads;
        sum.copies += run.counts().copies;
        sum.shared_tokens += run.counts().shared_tokens;
      },
      about, params);
  std::ostringstream said;
  rc::detail::printResultMessage(result, said);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << said.str();
  // The schedules are worth something only if all of this happens in them.
  for (const int64_t count : {sum.forks, sum.preemptions, sum.loads, sum.copies, sum.shared_tokens})
    EXPECT_GT(count, 1000);
  RecordProperty("steps", std::to_string(sum.steps));
}

}  // namespace
}  // namespace latte::scheduler_property_test
