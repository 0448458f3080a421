#include "src/base/limits/memory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/sanitizers.h"
#include "tests/support/scratch_dir.h"

namespace latte::memory_test {
namespace {

class Memory : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path at = dir_.File(path);
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  std::optional<int64_t> Available() const { return AvailableMemory(0, dir_.path()); }
  std::optional<int64_t> Total() const { return TotalMemory(dir_.path()); }
  testing_support::ScratchDir dir_;
};

TEST_F(Memory, IsWhatTheSystemCallsAvailable) {
  Write("proc/meminfo", "MemTotal:       100 kB\nMemAvailable:    60 kB\nMemFree: 5 kB\n");
  EXPECT_EQ(Available(), 60 * 1024);
}

TEST_F(Memory, IsWhatTheGroupLeavesIfThatIsLess) {
  Write("proc/meminfo", "MemTotal: 80 kB\nMemAvailable: 60 kB\n");
  Write("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Write("proc/self/cgroup", "0::/box\n");
  Write("sys/fs/cgroup/box/memory.max", "40000\n");
  Write("sys/fs/cgroup/box/memory.current", "30000\n");
  EXPECT_EQ(Available(), 10000);
  EXPECT_EQ(Total(), 40000);
  Write("sys/fs/cgroup/box/memory.stat", "anon 7\ninactive_file 5000\n");
  EXPECT_EQ(Available(), 15000);
  Write("sys/fs/cgroup/box/memory.max", "max\n");
  EXPECT_EQ(Available(), 60 * 1024);
  EXPECT_EQ(Total(), 80 * 1024);
  Write("sys/fs/cgroup/box/memory.max", "9000000\n");
  EXPECT_EQ(Available(), 60 * 1024);
  Write("proc/meminfo", "");
  EXPECT_EQ(Available(), 9000000 - 25000);
}

TEST_F(Memory, IsUnknownWithoutEither) {
  EXPECT_EQ(Available(), std::nullopt);
  for (const char* text : {"much", "", "-1 kB", "9223372036854775807 kB", "x60 kB"}) {
    Write("proc/meminfo", std::string("MemAvailable: ") + text + "\n");
    EXPECT_EQ(Available(), std::nullopt) << text;
  }
}

TEST_F(Memory, OfThisMachineIsSomething) {
  EXPECT_GT(AvailableMemory(), 1 << 20);
  EXPECT_GE(TotalMemory(), AvailableMemory());
}

TEST(MemoryText, HasTwoDecimals) {
  EXPECT_EQ(MemoryText(0), "0.00 MB");
  EXPECT_EQ(MemoryText(11'040'000), "11.04 MB");
  EXPECT_EQ(MemoryText(999'000'000), "999.00 MB");
  EXPECT_EQ(MemoryText(31'414'000'000), "31.41 GB");
}

TEST(AnonymousMemory, IsZeroWhollyWritableAndTakesMemoryWhereItIsTouched) {
  for (const PageSize pages : {PageSize::kUsual, PageSize::kHuge}) {
    constexpr int64_t kLarge = int64_t{1} << 36;  // more than a test could take
    const auto memory = AnonymousMemory::Reserve(kLarge, pages);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->bytes(), kLarge);
    for (const int64_t at : {int64_t{0}, kLarge / 2, kLarge - 1}) {
      EXPECT_EQ(memory->data()[at], std::byte{0});
      memory->data()[at] = std::byte{1};
    }
  }
  EXPECT_FALSE(AnonymousMemory::Reserve(0, PageSize::kUsual));
  EXPECT_FALSE(AnonymousMemory::Reserve(int64_t{1} << 62, PageSize::kUsual));
}

// In a process of its own, as a limit cannot be raised again.
TEST_F(Memory, IsWhatTheLimitOnAddressSpaceLeavesIfThatIsLess) {
  if (testing_support::kUnderTsan) GTEST_SKIP() << "ThreadSanitizer reserves more address space";
  Write("proc/meminfo", "MemAvailable: 99999999999 kB\n");
  const auto under = [this](int64_t limit) {
    const rlimit most = {static_cast<rlim_t>(limit), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &most);
    const int64_t left = AvailableMemory(0, dir_.path()).value_or(-1);
    const int64_t with_mapped = AvailableMemory(limit, dir_.path()).value_or(-1);
    std::_Exit(left > limit / 2 && left < limit && with_mapped > limit ? 0 : 1);
  };
  // AddressSanitizer reserves less address space than this.
  for (const int64_t limit : {int64_t{1} << 46, (int64_t{1} << 46) - 12345})
    EXPECT_EXIT(under(limit), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace latte::memory_test
