// ReadAhead and BytesReadFromDisk of file.h.
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/file.h"
#include "tests/support/scratch_dir.h"

namespace latte::read_ahead_test {
namespace {

constexpr int64_t kBytes = 4 << 20;

// Writes a file whose pages are on disk alone, if its file system allows that.
void WriteCold(const std::string& path) {
  std::ofstream(path, std::ios::binary) << std::string(kBytes, 'x');
  const int file = open(path.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  fsync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

int64_t PagesInMemory(std::span<const std::byte> bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes.size() + page - 1) / page);
  if (mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), resident.data()) != 0) return -1;
  int64_t count = 0;
  for (const unsigned char one : resident) count += one & 1;
  return count;
}

TEST(ReadAhead, BringsThePagesOfARangeIntoMemory) {
  const testing_support::ScratchDir dir;
  WriteCold(dir.File("cold"));
  const auto file = MappedFile::Open(dir.File("cold"));
  ASSERT_TRUE(file) << ToString(file.error());
  const std::span<const std::byte> bytes = (*file)->bytes();
  if (PagesInMemory(bytes) != 0) GTEST_SKIP() << "the file system keeps its files in memory";
  const std::optional<int64_t> before = BytesReadFromDisk();
  const std::span<const std::byte> wanted = bytes.subspan(kBytes / 4 + 7, kBytes / 2);
  ReadAhead(wanted);
  // The system reads them in the background.
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  for (int wait = 0; PagesInMemory(bytes) < kBytes / 2 / page && wait < 6000; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(PagesInMemory(bytes), kBytes / 2 / page);
  EXPECT_EQ(bytes.back(), std::byte{'x'});
  if (const int64_t read = before ? *BytesReadFromDisk() - *before : 0; read > 0) {
    EXPECT_GE(read, kBytes / 2);  // network file systems do not count
  }
}

TEST(ReadAhead, AnEmptyRangeAsksForNothing) { ReadAhead({}); }

}  // namespace
}  // namespace latte::read_ahead_test
