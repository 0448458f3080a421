// Random schedules: prompts with common prefixes, forks, cancellations, pages from disk, too few
// pages. tests/support/schedule_run.h defines the claims.
#include "fuzz/fuzz_input.h"
#include "tests/support/schedule_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  latte::testing_support::ScheduleRun run({data, size});
  const std::string problem = run.Run();
  latte::fuzz::Require(problem.empty(), problem);
  return 0;
}
