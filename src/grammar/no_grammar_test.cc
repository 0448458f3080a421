// A build without xgrammar says so.
#include <gtest/gtest.h>

#include "src/grammar/grammar.h"

namespace latte::no_grammar_test {
namespace {

TEST(NoGrammarTest, EveryUseIsRefused) {
  EXPECT_EQ(GrammarLibrary(), "");
  const Status status = CheckGrammar({GrammarSyntax::kRegex, "a"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnsupported);
  EXPECT_NE(status.error().message.find("make grammar"), std::string::npos);
}

}  // namespace
}  // namespace latte::no_grammar_test
