#include "apps/terminal/answer/markdown_ink.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace latte::markdown_ink_test {
namespace {

// The characters, each change of ink as {sum} before them.
std::string Inked(std::u32string_view text) {
  MarkdownInk ink;
  std::vector<InkedChar> chars;
  for (const char32_t c : text) ink.Put(c, &chars);
  ink.Finish(&chars);
  std::string out;
  int before = kNoInk;
  for (const InkedChar& one : chars) {
    if (one.ink != before) out += "{" + std::to_string(one.ink) + "}";
    before = one.ink;
    out += one.c == U'•' ? "•" : std::string(1, static_cast<char>(one.c));
  }
  return out;
}

TEST(MarkdownInk, Emphasis) {
  EXPECT_EQ(Inked(U"a **b c** d"), "a {1}b c{0} d");
  EXPECT_EQ(Inked(U"an *i* and ***both***."), "an {2}i{0} and {3}both{0}.");
  EXPECT_EQ(Inked(U"**a *b* c**"), "{1}a {3}b{1} c");
  EXPECT_EQ(Inked(U"2 * 3 ** 4 * 5"), "2 * 3 ** 4 * 5");
  EXPECT_EQ(Inked(U"**** a"), "**** a");
  EXPECT_EQ(Inked(U"a **"), "a **");
  EXPECT_EQ(Inked(U"**a\nb** c"), "{1}a{0}\n{1}b{0} c");
  EXPECT_EQ(Inked(U"**a\n\nb"), "{1}a{0}\n\nb");  // a paragraph ends it
  EXPECT_EQ(Inked(U"\\*a\\* \\q \\"), "*a* \\q \\");
}

TEST(MarkdownInk, FormulasKeepTheirBackslashes) {
  EXPECT_EQ(Inked(U"\\(x\\) \\[y\\] a \\\\ b \\{c\\}"), "\\(x\\) \\[y\\] a \\\\ b \\{c\\}");
}

TEST(MarkdownInk, Code) {
  EXPECT_EQ(Inked(U"`a*b*` c"), "{4}a*b*{0} c");
  EXPECT_EQ(Inked(U"``a`b`` c"), "{4}a`b{0} c");
  EXPECT_EQ(Inked(U"`a\nb"), "{4}a{0}\nb");
  EXPECT_EQ(Inked(U"```c **x**\n"), "```c **x**\n");
  EXPECT_EQ(Inked(U"`\\n`"), "{4}\\n");
}

TEST(MarkdownInk, HeadingsAndLists) {
  EXPECT_EQ(Inked(U"## A *b*\nc"), "{1}A *b*{0}\nc");
  EXPECT_EQ(Inked(U"#a\n####### b"), "#a\n####### b");
  EXPECT_EQ(Inked(U"- a\n  * b\n+ c\n-d\n--- \na - b"), "• a\n  • b\n• c\n-d\n--- \na - b");
  EXPECT_EQ(Inked(U"* **a**: b"), "• {1}a{0}: b");
}

}  // namespace
}  // namespace latte::markdown_ink_test
