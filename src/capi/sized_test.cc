#include "src/capi/sized.h"

#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

namespace latte::capi {

// A struct whose first version ended with `a`.
struct Grown {
  size_t size;
  int64_t a;
  int64_t b;
};
template <>
inline constexpr size_t kFirstBytes<Grown> = 16;

namespace {

constexpr Grown kDefaults = {sizeof(Grown), 1, 2};

// A caller's struct of any size, in memory of exactly that size.
class CallersStruct {
 public:
  CallersStruct(size_t bytes, int64_t fill)
      : words_(std::make_unique<int64_t[]>(bytes / sizeof(int64_t))) {
    for (size_t i = 0; i < bytes / sizeof(int64_t); ++i) words_[i] = fill;
    words_[0] = static_cast<int64_t>(bytes);
  }
  int64_t& operator[](size_t i) { return words_[i]; }
  Grown* get() { return reinterpret_cast<Grown*>(words_.get()); }

 private:
  std::unique_ptr<int64_t[]> words_;
};

TEST(Sized, AnOlderCallersStructKeepsTheDefaultsOfWhatItLacks) {
  CallersStruct old(16, 7);
  const Result<Grown> read = ReadSized(old.get(), kDefaults, "Grown");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->a, 7);
  EXPECT_EQ(read->b, 2);
  EXPECT_EQ(read->size, sizeof(Grown));
}

TEST(Sized, ANewerCallersStructIsTakenWhileItsUnknownMembersAreZero) {
  CallersStruct newer(32, 0);
  newer[1] = 8;
  EXPECT_EQ(ReadSized(newer.get(), kDefaults, "Grown")->a, 8);
  newer[3] = 1;
  const Result<Grown> refused = ReadSized(newer.get(), kDefaults, "Grown");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
}

TEST(Sized, WritesWhatTheCallerHasRoomForAndClearsTheRest) {
  CallersStruct old(16, 9);
  ASSERT_TRUE(WriteSized(old.get(), 16, kDefaults, "Grown"));
  EXPECT_EQ(old[0], 16);
  EXPECT_EQ(old[1], 1);
  CallersStruct newer(32, 9);
  ASSERT_TRUE(WriteSized(newer.get(), 32, kDefaults, "Grown"));
  EXPECT_EQ(newer[0], 32);
  EXPECT_EQ(newer[2], 2);
  EXPECT_EQ(newer[3], 0);
}

TEST(Sized, RefusesSizesThatNoVersionHasAndTouchesNothing) {
  for (const size_t size : {size_t{0}, size_t{8}, size_t{15}, kMaxStructBytes + 1, SIZE_MAX}) {
    Grown grown = {size, 5, 5};
    const Result<Grown> read = ReadSized(&grown, kDefaults, "Grown");
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_NE(read.error().message.find("sizeof(Grown)"), std::string::npos);
    ASSERT_FALSE(WriteSized(&grown, size, kDefaults, "Grown"));
    EXPECT_EQ(grown.a, 5);
  }
  EXPECT_FALSE(ReadSized<Grown>(nullptr, kDefaults, "Grown"));
  EXPECT_FALSE(WriteSized<Grown>(nullptr, sizeof(Grown), kDefaults, "Grown"));
}

// A program that was compiled against the first version must go on working: these never change.
TEST(Sized, FirstVersionsHaveNoPaddingAtTheirEnd) {
  EXPECT_EQ(kFirstBytes<latte_error>, 1032u);
  EXPECT_EQ(kFirstBytes<latte_engine_options>, 152u);
  EXPECT_EQ(kFirstBytes<latte_request>, 216u);
  EXPECT_EQ(kFirstBytes<latte_stats>, 160u);
}

}  // namespace
}  // namespace latte::capi
