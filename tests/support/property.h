// Property tests: claims that must hold for every input, checked on many random ones. A failure
// prints the smallest failing input found and a line for RC_PARAMS that repeats it.
#pragma once

#include <sstream>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace latte::testing_support {

// `property` takes random arguments and states its claim with RC_ASSERT. Arguments grow from case
// to case, up to lists of `most` elements.
template <class Property>
void CheckProperty(int cases, int most, Property&& property) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const rc::detail::TestMetadata name{test->name(), test->name()};
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = cases;
  params.maxSize = most;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), name, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << text.str();
}

}  // namespace latte::testing_support
