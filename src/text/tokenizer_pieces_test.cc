// Tokenizer::EncodePieces: the author of a text decides whether the text can become a token.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/text/tokenizer.h"
#include "tests/support/golden_strings.h"
#include "tests/support/parameter_name.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::tokenizer_pieces_test {
namespace {

using Ids = std::vector<int32_t>;
using Pieces = std::vector<TextPiece>;

constexpr EncodeOptions kParse{.parse_special = true};

Tokenizer Load(const JsonOut& file) { return Tokenizer::FromJson(Dump(file)).value(); }

// "ab" is 256; <s> 257 is special, <tool> 258 is not.
Tokenizer Small() {
  JsonOut file = SmallTokenizer({"a b"});
  AddToken(&file, "<s>");
  AddToken(&file, "<tool>", {{"special", false}});
  return Load(file);
}

TEST(EncodePieces, TokensComeFromTrustedTextOnly) {
  const Tokenizer tokenizer = Small();
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<s><tool>", true}}), (Ids{257, 258}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<s>", false}}), (Ids{'<', 's', '>'}));
  EXPECT_EQ(tokenizer.EncodePieces(Pieces{{"<tool>", false}})->size(), 6u);
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<s>", true}, {"<s>", false}, {"<s>", true}}),
            (Ids{257, '<', 's', '>', 257}));
}

TEST(EncodePieces, ATokenMustLieWhollyInTrustedText) {
  const Tokenizer tokenizer = Small();
  const Ids spelled = {'<', 's', '>'};
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<", false}, {"s>", true}}), spelled);
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<s", true}, {">", false}}), spelled);
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<", true}, {"s", false}, {">", true}}), spelled);
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<", true}, {"s>", true}}), (Ids{257}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<", true}, {"", false}, {"s>", true}}), (Ids{257}));
}

TEST(EncodePieces, WhatLiesBetweenTokensIsOneText) {
  const Tokenizer tokenizer = Small();
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<s>a", true}, {"b", false}}), (Ids{257, 256}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"a", false}, {"b<s>", true}}), (Ids{256, 257}));
  EXPECT_EQ(*tokenizer.EncodePieces({}), Ids{});
}

TEST(EncodePieces, UntrustedTextCannotHideTheTokenBesideIt) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<a>");     // 256
  AddToken(&file, "<a>b");    // 257
  AddToken(&file, "x<a>");    // 258
  AddToken(&file, "<a><c>");  // 259
  const Tokenizer tokenizer = Load(file);
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<a>", true}, {"b", false}}), (Ids{256, 'b'}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"x", false}, {"<a>b", true}}), (Ids{'x', 257}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<a>", true}, {"<c>", false}}),
            (Ids{256, '<', 'c', '>'}));
}

TEST(EncodePieces, NeighboursCountWhoeverWroteThem) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<l>", {{"lstrip", true}});                            // 256
  AddToken(&file, "<r>", {{"rstrip", true}});                            // 257
  AddToken(&file, "wd", {{"single_word", true}, {"normalized", true}});  // 258
  const Tokenizer tokenizer = Load(file);
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"x ", false}, {"<l>", true}, {" y", false}}),
            (Ids{'x', 256, ' ', 'y'}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<r>", true}, {"\n y", false}}), (Ids{257, 'y'}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"x", false}, {"wd", true}}), (Ids{'x', 'w', 'd'}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"-", false}, {"wd", true}}), (Ids{'-', 258}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<l>wd", true}, {" wd", false}, {"<l>wd", true}}),
            (Ids{256, 258, ' ', 'w', 'd', 256, 258}));  // the second round keeps its places
}

TEST(EncodePieces, InvalidUtf8IsReplacedOnEachSideOfABorder) {
  const Tokenizer tokenizer = Small();
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"<s>", true}, {"a\xF0\x9F", false}, {"<s>", true}}),
            *tokenizer.EncodePieces(Pieces{{"<s>", true}, {"a\uFFFD", false}, {"<s>", true}}));
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{"\xC3", false}, {"\xA9", true}}),
            *tokenizer.Encode("\uFFFD\uFFFD"));
}

// A tokenizer of a real kind, and the tokens that mark its turns.
struct Case {
  const char* name;
  const char* folder;  // in the repository; null: taken from LATTE_TEST_TOKENIZER_DIR
  std::vector<std::string> marks;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class PiecesOf : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const char* outside = std::getenv("LATTE_TEST_TOKENIZER_DIR");
    if (GetParam().folder == nullptr && outside == nullptr)
      GTEST_SKIP() << "LATTE_TEST_TOKENIZER_DIR does not name a tokenizer";
    const std::string dir = GetParam().folder == nullptr
                                ? outside
                                : std::string(LATTE_SOURCE_DIR) + "/" + GetParam().folder;
    Result<Tokenizer> loaded = Tokenizer::Load(dir);
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    tokenizer_ = *std::move(loaded);
    for (const std::string& mark : GetParam().marks) {
      const auto ids = tokenizer_->Encode(mark, kParse).value();
      ASSERT_EQ(ids.size(), 1u) << mark << " is no token of " << dir;
      marks_.push_back(ids[0]);
    }
  }
  std::optional<Tokenizer> tokenizer_;
  Ids marks_;
};

TEST_P(PiecesOf, OrdinaryConversationsEncodeAsTheirText) {
  const std::vector<std::string> texts = {"Hello!",
                                          " ",
                                          "\n\n",
                                          "  two  spaces ",
                                          "I'll say it's 12345678 o'clock",
                                          "naïve",
                                          "日",
                                          "日本語の文。",
                                          "🙂🙂🏽",
                                          "\t#include <x>\r\n",
                                          "user",
                                          "e",
                                          ": ",
                                          "<",
                                          "|>",
                                          "\u3000x",
                                          ">",
                                          "word",
                                          "\u0301accent",
                                          "end.\n"};
  for (uint64_t row = 0; row < 3000; ++row) {
    Lcg rng(row);
    std::string all;
    std::vector<std::string> parts;
    std::vector<bool> from_template;
    for (uint64_t n = 1 + rng.Below(9); n > 0; --n) {
      const bool mark = rng.Below(3) == 0;
      const auto& from = mark ? GetParam().marks : texts;
      parts.push_back(from[rng.Below(from.size())]);
      from_template.push_back(mark || rng.Below(2) == 0);
      all += parts.back();
    }
    Pieces pieces;
    for (size_t i = 0; i < parts.size(); ++i) pieces.push_back({parts[i], from_template[i]});
    ASSERT_EQ(*tokenizer_->EncodePieces(pieces), *tokenizer_->Encode(all, kParse)) << all;
  }
}

TEST_P(PiecesOf, UntrustedTextNeverBecomesAMark) {
  const std::vector<std::string> around = {"", " ", "x", "\n", "<", "|", "日"};
  for (const std::string& mark : GetParam().marks) {
    for (const std::string& before : around)
      for (const std::string& after : around) {
        const std::string text = before + mark + after;
        const Ids ids = *tokenizer_->EncodePieces(Pieces{{text, false}});
        for (const int32_t id : marks_)
          EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 0) << text;
        EXPECT_EQ(*tokenizer_->Decode(ids), text);
      }
    for (size_t cut = 1; cut < mark.size(); ++cut) {
      if ((static_cast<uint8_t>(mark[cut]) & 0xC0) == 0x80) continue;  // inside a code point
      for (const bool first : {true, false}) {
        const Ids ids = *tokenizer_->EncodePieces(
            Pieces{{mark.substr(0, cut), first}, {mark.substr(cut), !first}});
        EXPECT_GT(ids.size(), 1u) << mark << " cut at " << cut;
        for (const int32_t id : marks_) EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PiecesOf,
    testing::Values(Case{"tiny",
                         "models/tiny",
                         {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>",
                          "<｜Assistant｜>"}},
                    Case{"v2_style",
                         "tests/data/tokenizer/v2_style",
                         {"<|begin|>", "<|end|>", "<user>", "<tool>", "</tool>", "<|pad|>"}},
                    Case{"kimi_style",
                         "tests/data/tokenizer/kimi_style",
                         {"<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>",
                          "<|im_system|>", "[BOS]", "[EOS]", "[EOT]"}},
                    Case{"deepseek_v3",
                         nullptr,
                         {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>",
                          "<｜Assistant｜>", "<｜tool▁sep｜>", "<|EOT|>"}}),
    testing_support::ParameterName());

// tiktoken encodes long runs in parts. The border between two parts must not split a mark.
TEST(EncodePieces, ALongMessageCannotBreakTheMarkAfterIt) {
  const Tokenizer tokenizer =
      Tokenizer::Load(std::string(LATTE_SOURCE_DIR) + "/tests/data/tokenizer/kimi_style").value();
  const int32_t mark = tokenizer.TokenId("<|im_end|>").value();
  for (const size_t size : {24990u, 24995u, 24999u, 25000u, 25001u}) {
    const std::string message(size, 'x');
    const Ids ids = *tokenizer.EncodePieces(Pieces{{message, false}, {"<|im_end|>", true}});
    ASSERT_EQ(ids.back(), mark) << size;
    const Ids text(ids.begin(), ids.end() - 1);
    EXPECT_EQ(*tokenizer.Decode(text), message);
  }
  const std::string longer = std::string(60000, 'x') + " " + std::string(30000, ' ');
  EXPECT_EQ(*tokenizer.EncodePieces(Pieces{{longer, false}}), *tokenizer.Encode(longer));
}

}  // namespace
}  // namespace latte::tokenizer_pieces_test
