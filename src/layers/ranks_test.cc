#include "src/layers/ranks.h"

#include <gtest/gtest.h>

namespace latte::ranks_test {
namespace {

TEST(ExpertExchange, IsReadFromItsName) {
  for (const ExpertExchange exchange : {ExpertExchange::kAuto, ExpertExchange::kGather,
                                        ExpertExchange::kPadded, ExpertExchange::kAllToAll})
    EXPECT_EQ(*ParseExpertExchange(Name(exchange)), exchange);
  const auto other = ParseExpertExchange("ring");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kInvalidArgument);
  EXPECT_EQ(other.error().message,
            "expert-exchange: expected auto, gather, padded or all-to-all, found 'ring'");
}

}  // namespace
}  // namespace latte::ranks_test
