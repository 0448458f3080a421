// Names and bounds of grammars; without xgrammar.
#include "src/grammar/grammar_rules.h"

#include <gtest/gtest.h>

namespace latte::grammar_rules_test {
namespace {

TEST(GrammarRulesTest, NamesAreReadBack) {
  for (const GrammarSyntax syntax :
       {GrammarSyntax::kJsonSchema, GrammarSyntax::kRegex, GrammarSyntax::kEbnf,
        GrammarSyntax::kLark, GrammarSyntax::kStructuralTag})
    EXPECT_EQ(FindGrammarSyntax(Name(syntax)), syntax);
  EXPECT_EQ(FindGrammarSyntax("json"), std::nullopt);
}

TEST(GrammarRulesTest, SizeAndDepthAreBounded) {
  const auto check = [](const std::string& text) {
    return CheckGrammarSize({GrammarSyntax::kRegex, text});
  };
  EXPECT_TRUE(check(std::string(256 << 10, 'a')));
  EXPECT_FALSE(check(std::string((256 << 10) + 1, 'a')));
  EXPECT_TRUE(check(std::string(200, '(') + std::string(200, ')')));
  EXPECT_FALSE(check(std::string(201, '(') + std::string(201, ')')));
  EXPECT_TRUE(CheckGrammarSize({GrammarSyntax::kStructuralTag, std::string(4 << 20, 'a')}));
  EXPECT_FALSE(CheckGrammarSize({GrammarSyntax::kStructuralTag, std::string((4 << 20) + 1, 'a')}));
  EXPECT_FALSE(check(std::string("a\0b", 3)));
  std::string flat;
  for (int i = 0; i < 1000; ++i) flat += "(a)[b]{1}";
  EXPECT_TRUE(check(flat));
}

}  // namespace
}  // namespace latte::grammar_rules_test
