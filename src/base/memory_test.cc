#include "src/base/memory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace latte {
namespace {

class Memory : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path at = dir_.File(path);
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  int64_t Available() const { return AvailableMemory(dir_.path()); }
  testing_support::ScratchDir dir_;
};

TEST_F(Memory, IsWhatTheSystemCallsAvailable) {
  Write("proc/meminfo", "MemTotal:       100 kB\nMemAvailable:    60 kB\nMemFree: 5 kB\n");
  EXPECT_EQ(Available(), 60 * 1024);
}

TEST_F(Memory, IsWhatTheGroupLeavesIfThatIsLess) {
  Write("proc/meminfo", "MemAvailable: 60 kB\n");
  Write("sys/fs/cgroup/memory.max", "40000\n");
  Write("sys/fs/cgroup/memory.current", "30000\n");
  EXPECT_EQ(Available(), 10000);
  Write("sys/fs/cgroup/memory.stat", "anon 7\ninactive_file 5000\n");
  EXPECT_EQ(Available(), 15000);
  Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(Available(), 60 * 1024);
}

TEST_F(Memory, IsUnknownWithoutEither) {
  EXPECT_EQ(Available(), 0);
  Write("proc/meminfo", "MemAvailable: much\n");
  EXPECT_EQ(Available(), 0);
}

TEST_F(Memory, OfThisMachineIsSomething) { EXPECT_GT(AvailableMemory(), 1 << 20); }

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

}  // namespace
}  // namespace latte
