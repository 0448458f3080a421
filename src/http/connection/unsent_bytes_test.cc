#include "src/http/connection/unsent_bytes.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace latte::unsent_bytes_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

ByteTotal Zero() { return std::make_shared<std::atomic<int64_t>>(0); }

TEST(UnsentBytes, KeepTheirOrderAndAreCounted) {
  const ByteTotal total = Zero();
  std::string expected;
  std::string sent;
  {
    UnsentBytes unsent(total, 1000);
    for (int i = 0; sent.size() < 3'000'000; ++i) {
      if (expected.size() < 3'000'000) {
        expected += std::string(static_cast<size_t>(i) * 37, static_cast<char>('a' + i % 26));
        unsent.Append(std::string_view(expected).substr(sent.size() + unsent.size()));
      }
      const std::string_view next = unsent.Next();
      const size_t taken = std::min<size_t>(next.size(), 20'000);
      sent += next.substr(0, taken);
      unsent.Sent(taken);
      EXPECT_EQ(sent.size() + unsent.size(), expected.size());
      EXPECT_EQ(*total, static_cast<int64_t>(unsent.size()));
    }
    EXPECT_EQ(sent, expected.substr(0, sent.size()));
    unsent.Append("more");
    unsent.Abandon();
    EXPECT_EQ(*total, 0);
    unsent.Append("and more");
  }
  EXPECT_EQ(*total, 0);
}

// 16 KiB now and then are enough, but not for a client that is far behind.
TEST(UnsentBytes, AClientFarBehindMustTakeMore) {
  constexpr size_t kMost = 64 << 10;
  const auto is_stalled = [](size_t length, size_t taken) {
    UnsentBytes unsent(Zero(), kMost);
    unsent.Append(std::string(length, 'x'));
    const auto after = UnsentBytes::Clock::now();
    std::this_thread::sleep_for(milliseconds(2));
    unsent.Next();
    unsent.Sent(taken);
    return unsent.IsStalled(after + hours(1) + nanoseconds(1), hours(1));
  };
  EXPECT_TRUE(is_stalled(kMost, (16 << 10) - 1));
  EXPECT_FALSE(is_stalled(kMost, 16 << 10));
  EXPECT_TRUE(is_stalled(4 * kMost, 16 << 10));
  EXPECT_TRUE(is_stalled(4 * kMost, kMost - 1));
  EXPECT_FALSE(is_stalled(4 * kMost, kMost));
  EXPECT_FALSE(is_stalled(100, 100));
}

}  // namespace
}  // namespace latte::unsent_bytes_test
