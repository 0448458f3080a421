#include "src/base/limits/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace latte::open_files_test {
namespace {

TEST(OpenFiles, TheLimitBecomesTheHardLimit) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseOpenFiles(), static_cast<int64_t>(before.rlim_max));
  rlimit after = {};
  getrlimit(RLIMIT_NOFILE, &after);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace latte::open_files_test
