#include "apps/chat/parameters.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace latte::parameters_test {
namespace {

std::string ErrorOf(std::string_view name, const std::string& text) {
  const auto set = WithParameter({}, name, text);
  return set ? "" : set.error().message;
}

TEST(Parameters, AreSetByTheNamesOfRequestsAndFlags) {
  const auto set = WithParameter({}, "top-k", "40");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->sampling.top_k, 40);
  EXPECT_TRUE(set->chosen.contains("top_k"));
  const auto both = WithParameter(*set, "stop", "END");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->stop.strings, std::vector<std::string>{"END"});
  EXPECT_EQ(both->sampling.top_k, 40);
  EXPECT_TRUE(WithParameter(*both, "stop", "\"\"")->stop.strings.empty());
  EXPECT_EQ(WithParameter({}, "stop", "\" END\"")->stop.strings, std::vector<std::string>{" END"});
  EXPECT_EQ(WithParameter({}, "logit_bias", "5:1.5")->sampling.logit_bias.size(), 1u);
}

TEST(Parameters, ErrorsNameWhatIsExpected) {
  EXPECT_NE(ErrorOf("temperature", "warm").find("a number"), std::string::npos);
  EXPECT_NE(ErrorOf("temperature", "-1").find("temperature"), std::string::npos);
  EXPECT_NE(ErrorOf("temprature", "1").find("did you mean temperature?"), std::string::npos);
  EXPECT_NE(ErrorOf("max_tokens", "0").find("1 or more"), std::string::npos);
}

TEST(Parameters, AllAreListed) {
  const std::vector<std::string> names = ParameterNames();
  const std::string text = ParametersText({}, false);
  for (const char* name : {"temperature", "seed", "max_tokens", "stop"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

TEST(Parameters, WhatIsNotChosenIsTheServers) {
  const auto set = WithParameter({}, "top-k", "40");
  ASSERT_TRUE(set);
  const std::string text = ParametersText(*set, true);
  EXPECT_NE(text.find("top_k                40\n"), std::string::npos) << text;
  EXPECT_NE(text.find("temperature          server's default\n"), std::string::npos) << text;
}

TEST(Parameters, OneIsShownAsInTheList) {
  EXPECT_EQ(ParameterText(*WithParameter({}, "stop", "\"\""), "stop"), "none");
  EXPECT_EQ(ParameterText(*WithParameter({}, "top-p", "0.50"), "top-p"), "0.5");
}

TEST(Parameters, QuotesAroundATextAreNoPartOfIt) {
  EXPECT_EQ(Unquoted("\"Be kind\""), "Be kind");
  EXPECT_EQ(Unquoted("\"\""), "");
  for (const char* text : {"", "\"", "Be kind", "\"a\" and \"b\"", "say \"a\"", "\"\"\""})
    EXPECT_EQ(Unquoted(text), text);
}

}  // namespace
}  // namespace latte::parameters_test
