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
  const std::string code = "a\n" + std::string(Pastes::kInline, 'b') + "\n";
  const std::string line(Pastes::kInline + 1, 'x');
  EXPECT_EQ(pastes.Insert(code), "[paste 1: 2 lines, 503 bytes]");
  EXPECT_EQ(pastes.Insert(line), "[paste 2: 1 line, 501 bytes]");
  EXPECT_EQ(pastes.Insert(code), "[paste 1: 2 lines, 503 bytes]");
  EXPECT_EQ(pastes.Expand("Why [paste 1: 2 lines, 503 bytes]? [paste 2: 1 line, 501 bytes]"),
            "Why " + code + "? " + line);
}

TEST(Pastes, ShortTextOfSeveralLinesCanBeEdited) {
  Pastes pastes;
  EXPECT_EQ(pastes.Insert("a\nb\n"), "a⏎b⏎");
  EXPECT_EQ(pastes.Expand("Why a⏎b⏎?"), "Why a\nb\n?");
  EXPECT_EQ(pastes.Expand("Why a!⏎c⏎?"), "Why a!\nc\n?");             // edited
  EXPECT_EQ(pastes.Insert("a ⏎\nb"), "[paste 2: 2 lines, 7 bytes]");  // its signs stay signs
  EXPECT_EQ(pastes.Expand("[paste 2: 2 lines, 7 bytes]"), "a ⏎\nb");
  EXPECT_TRUE(pastes.BeginsWithLines("a⏎b⏎ and more"));
}

TEST(Pastes, AMarkInPastedTextIsText) {
  Pastes pastes;
  const std::string long_text = std::string(Pastes::kInline, 'a') + "\nb";
  const std::string inner = pastes.Insert(long_text) + "\n" + std::string(Pastes::kInline, 'x');
  EXPECT_EQ(pastes.Expand(pastes.Insert(inner)), inner);
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
