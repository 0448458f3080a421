#include "src/serve/workers.h"

#include <semaphore>

#include <gtest/gtest.h>

namespace latte::workers_test {
namespace {

TEST(Workers, MoreThanMayWaitAreRefused) {
  std::binary_semaphore has_begun(0), go_on(0);
  Workers workers(1, 2);
  ASSERT_TRUE(workers.Post([&] {
    has_begun.release();
    go_on.acquire();
  }));
  has_begun.acquire();
  EXPECT_TRUE(workers.Post([] {}));
  EXPECT_TRUE(workers.Post([] {}));
  EXPECT_EQ(workers.waiting(), 2U);
  EXPECT_FALSE(workers.Post([] {}));
  go_on.release();
}

}  // namespace
}  // namespace latte::workers_test
