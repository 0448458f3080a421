#include "src/checkpoint/check_weights.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace latte::check_weights_test {
namespace {

// A file with one tensor 't' of shape [rows, columns]: all zero except for `word` at element `at`.
// An odd number of header bytes leaves the data unaligned.
class WeightFile {
 public:
  WeightFile(const std::string& dtype, int64_t bytes_each, int64_t rows, int64_t columns) {
    dir_ = std::filesystem::path(testing::TempDir()) / fmt::format("latte_weights_{}", getpid());
    std::filesystem::create_directories(dir_);
    std::string header =
        fmt::format(R"({{"t":{{"dtype":"{}","shape":[{},{}],"data_offsets":[0,{}]}}}})", dtype,
                    rows, columns, rows * columns * bytes_each);
    if (header.size() % 2 == 0) header += ' ';
    const uint64_t n = header.size();
    bytes_.assign(sizeof n, '\0');
    std::memcpy(bytes_.data(), &n, sizeof n);
    bytes_ += header;
    data_ = bytes_.size();
    bytes_.resize(data_ + static_cast<size_t>(rows * columns * bytes_each));
  }
  ~WeightFile() { std::filesystem::remove_all(dir_); }

  template <class Word>
  void Set(int64_t at, Word word) {
    std::memcpy(bytes_.data() + data_ + static_cast<size_t>(at) * sizeof word, &word, sizeof word);
  }
  Status Check(const BytesChecked& checked = {}) const {
    std::ofstream(dir_ / "model.safetensors", std::ios::binary) << bytes_;
    const auto checkpoint = Checkpoint::Open(dir_.string());
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    return CheckWeights(*checkpoint, checked);
  }

 private:
  std::filesystem::path dir_;
  std::string bytes_;
  size_t data_ = 0;
};

TEST(CheckWeights, F35_NamesFileTensorAndIndex) {
  WeightFile file("F32", 4, 100, 77);
  EXPECT_TRUE(file.Check());
  file.Set(99 * 77 + 5, std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity()));
  const Status status = file.Check();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCorrupt);
  for (const char* part : {"model.safetensors: tensor 't'", "F32", "[99, 5]"})
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
}

TEST(CheckWeights, TellsTheBytes) {
  std::vector<int64_t> seen;
  const auto checked = [&](int64_t done, int64_t total) { seen.assign({done, total}); };
  EXPECT_TRUE(WeightFile("F32", 4, 100, 77).Check(checked));
  EXPECT_EQ(seen, (std::vector<int64_t>{100 * 77 * 4, 100 * 77 * 4}));
}

TEST(CheckWeights, F35_EveryTypeHasItsOwnValuesThatAreNotFinite) {
  const struct {
    const char* dtype;
    int64_t bytes;
    uint64_t bad, good;
  } rows[] = {
      {"BF16", 2, 0xffc0, 0xff7f},        {"BF16", 2, 0x7f80, 0x7f7f},
      {"F16", 2, 0xfc00, 0xfbff},         {"F16", 2, 0x7e00, 0x7bff},
      {"F32", 4, 0x7fc00000, 0x7f7fffff}, {"F64", 8, 0xfff0000000000000, 0xffefffffffffffff},
      {"F8_E4M3", 1, 0x7f, 0x7e},         {"F8_E4M3", 1, 0xff, 0xfe},
      {"F8_E5M2", 1, 0xfc, 0xfb},         {"F8_E4M3FNUZ", 1, 0x80, 0xff},
      {"F8_E5M2FNUZ", 1, 0x80, 0x7f},     {"F8_E8M0", 1, 0xff, 0xfe},
  };
  for (const auto& row : rows) {
    // The tensor is longer than a block, and the value is in the last, partial block.
    WeightFile file(row.dtype, row.bytes, 3, 1500);
    const auto set = [&](uint64_t word) {
      if (row.bytes == 1) file.Set(4499, static_cast<uint8_t>(word));
      if (row.bytes == 2) file.Set(4499, static_cast<uint16_t>(word));
      if (row.bytes == 4) file.Set(4499, static_cast<uint32_t>(word));
      if (row.bytes == 8) file.Set(4499, word);
    };
    set(row.good);
    EXPECT_TRUE(file.Check()) << row.dtype << " " << row.good;
    set(row.bad);
    const Status status = file.Check();
    ASSERT_FALSE(status) << row.dtype << " " << row.bad;
    EXPECT_NE(status.error().message.find("[2, 1499]"), std::string::npos);
  }
}

TEST(CheckWeights, IntegersAreAlwaysFinite) {
  WeightFile file("I32", 4, 2, 2);
  file.Set(1, uint32_t{0x7fc00000});
  EXPECT_TRUE(file.Check());
}

}  // namespace
}  // namespace latte::check_weights_test
