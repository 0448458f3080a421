#include "src/base/limits/out_of_memory.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace latte::out_of_memory_test {
namespace {

TEST(OutOfMemoryTest, TellsSizePurposeAndWhatToDo) {
  const Error error = ErrorOf(OutOfMemory(4096, "a tensor"));
  EXPECT_EQ(error.code, Code::kExhausted);
  EXPECT_TRUE(error.message.starts_with("out of memory: cannot allocate 4096 bytes for a tensor"));
  EXPECT_NE(error.message.find("fewer threads"), std::string::npos);
}

TEST(OutOfMemoryTest, KeepsAPurposeOfAnyLength) {
  const std::string what = OutOfMemory(INT64_MAX, std::string(5000, 'x')).what();
  EXPECT_LT(what.size(), 160u);
  EXPECT_TRUE(what.ends_with(" bytes for " + std::string(96, 'x')));
}

TEST(OutOfMemoryTest, KnowsWhatTheStandardLibraryThrows) {
  EXPECT_EQ(ErrorOf(std::bad_alloc()).code, Code::kExhausted);
  EXPECT_EQ(ErrorOf(std::bad_array_new_length()).code, Code::kExhausted);
  const std::system_error no_thread(
      std::make_error_code(std::errc::resource_unavailable_try_again));
  EXPECT_EQ(ErrorOf(no_thread).code, Code::kExhausted);
  EXPECT_NE(ErrorOf(no_thread).message.find("ulimit -u"), std::string::npos);
  const std::system_error no_memory(std::make_error_code(std::errc::not_enough_memory));
  EXPECT_EQ(ErrorOf(no_memory).code, Code::kExhausted);
  EXPECT_EQ(ErrorOf(std::logic_error("a bug")).code, Code::kInternal);
}

TEST(OutOfMemoryTest, CatchExhaustionPassesResultsAndForeignExceptions) {
  EXPECT_EQ(CatchExhaustion([]() -> Result<int> { return 7; }).value(), 7);
  EXPECT_EQ(CatchExhaustion([]() -> Status { return NotFound("x"); }).error().code,
            Code::kNotFound);
  const auto short_of = []() -> Status { throw OutOfMemory(1, "a test"); };
  EXPECT_EQ(CatchExhaustion(short_of).error().code, Code::kExhausted);
  const auto failed = []() -> Status { throw DeviceError("the GPU failed"); };
  EXPECT_EQ(CatchExhaustion(failed).error().code, Code::kUnavailable);
  const auto lacks = []() -> Status { throw DeviceError("no kernel", Code::kUnsupported); };
  EXPECT_EQ(CatchExhaustion(lacks).error().code, Code::kUnsupported);
  EXPECT_EQ(CatchExhaustion(lacks).error().message, "no kernel");
  const auto foreign = []() -> Status { throw std::runtime_error("of the embedder"); };
  EXPECT_THROW(static_cast<void>(CatchExhaustion(foreign)), std::runtime_error);
}

}  // namespace
}  // namespace latte::out_of_memory_test
