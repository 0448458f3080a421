#include "apps/terminal/pastes.h"

#include <gtest/gtest.h>

namespace latte::pastes_test {
namespace {

TEST(Pastes, ShortLinesGoIntoTheLine) {
  Pastes pastes;
  EXPECT_EQ(pastes.Insert("one line"), "one line");
  EXPECT_EQ(pastes.Expand("one line"), "one line");
}

TEST(Pastes, AMarkStandsForLongText) {
  Pastes pastes;
  const std::string code = "a\nb\n";
  const std::string line(Pastes::kInline + 1, 'x');
  EXPECT_EQ(pastes.Insert(code), "[paste 1: 2 lines, 4 bytes]");
  EXPECT_EQ(pastes.Insert(line), "[paste 2: 1 line, 501 bytes]");
  EXPECT_EQ(pastes.Insert(code), "[paste 1: 2 lines, 4 bytes]");
  EXPECT_EQ(pastes.Expand("Why [paste 1: 2 lines, 4 bytes]? [paste 2: 1 line, 501 bytes]"),
            "Why a\nb\n? " + line);
}

TEST(Pastes, AMarkInPastedTextIsText) {
  Pastes pastes;
  pastes.Insert("a\nb");
  const std::string mark = pastes.Insert("[paste 1: 2 lines, 3 bytes]\nx");
  EXPECT_EQ(pastes.Expand(mark), "[paste 1: 2 lines, 3 bytes]\nx");
  EXPECT_EQ(pastes.Expand("[paste 9: 2 lines, 3 bytes]"), "[paste 9: 2 lines, 3 bytes]");
}

TEST(Pastes, ALineMayBeginWithSeveralLines) {
  Pastes pastes;
  const std::string lines = pastes.Insert("/a\nb");
  const std::string one = pastes.Insert(std::string(Pastes::kInline + 1, '/'));
  EXPECT_TRUE(pastes.BeginsWithLines(lines + " and more"));
  EXPECT_FALSE(pastes.BeginsWithLines("/save " + lines));
  EXPECT_FALSE(pastes.BeginsWithLines(one));
  EXPECT_FALSE(pastes.BeginsWithLines(""));
}

TEST(Pastes, LineEndsAndControls) {
  EXPECT_EQ(PastedText("a\rb\r\nc\nd"), "a\nb\nc\nd");
  EXPECT_EQ(PastedText("a\x1b[31m\tb\x7f\x01ü"), "a[31m\tbü");
}

}  // namespace
}  // namespace latte::pastes_test
