#include "src/text/pretokenize.h"

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/text/pretokenize_json.h"
#include "src/text/unicode/byte_level.h"

namespace latte::pretokenize_test {
namespace {

using Pieces = std::vector<std::string>;

Pieces Split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  PreTokenizer::Scratch scratch(pre_tokenizer);
  Pieces pieces;
  const Status split = pre_tokenizer.Split(text, &scratch, [&](std::string_view piece) -> Status {
    pieces.emplace_back(piece);
    return {};
  });
  if (!split) return {split.error().message};
  return pieces;
}

PreTokenizer Make(const std::vector<PreTokenizeStep>& steps, bool jit = true) {
  return PreTokenizer::Create(steps, jit).value();
}

PreTokenizer Regexes(const std::vector<std::string>& patterns) {
  std::vector<PreTokenizeStep> steps;
  for (const std::string& pattern : patterns) steps.push_back({.pattern = pattern});
  return Make(steps);
}

TEST(PreTokenizer, BehaviorsPlaceTheMatches) {
  const auto split = [](SplitBehavior behavior, bool invert = false) {
    return Split(Make({{.pattern = "-", .behavior = behavior, .invert = invert}}), "a--b-");
  };
  EXPECT_EQ(split(SplitBehavior::kIsolated), (Pieces{"a", "-", "-", "b", "-"}));
  EXPECT_EQ(split(SplitBehavior::kRemoved), (Pieces{"a", "b"}));
  EXPECT_EQ(split(SplitBehavior::kMergedWithPrevious), (Pieces{"a-", "-", "b-"}));
  EXPECT_EQ(split(SplitBehavior::kMergedWithNext), (Pieces{"a", "-", "-b", "-"}));
  EXPECT_EQ(split(SplitBehavior::kContiguous), (Pieces{"a", "--", "b", "-"}));
  EXPECT_EQ(split(SplitBehavior::kRemoved, /*invert=*/true), (Pieces{"-", "-", "-"}));
}

// A step splits the pieces of earlier steps. One alternation of both patterns would not.
TEST(PreTokenizer, LaterStepsSplitTheWordsOfEarlierOnes) {
  const std::string letters = R"(\s?[A-Za-zÀ-ÿ]+)", ascii = R"(\s?[!-/:-~]+)";
  EXPECT_EQ(Split(Regexes({letters, ascii}), "héllo élan"), (Pieces{"h", "é", "llo", " é", "lan"}));
  EXPECT_EQ(Split(Regexes({letters + "|" + ascii}), "héllo élan"), (Pieces{"héllo", " élan"}));
}

TEST(PreTokenizer, AnchorsAndLookaroundsSeeOnePieceOnly) {
  EXPECT_EQ(Split(Regexes({R"(\d)", R"(\s+$)"}), "a  1b "), (Pieces{"a", "  ", "1", "b", " "}));
  EXPECT_EQ(Split(Regexes({R"(\d)", R"((?<!1)b)"}), "1bb"), (Pieces{"1", "b", "b"}));
}

TEST(PreTokenizer, PrefixSpacesGoBeforeEveryPieceThatHasNone) {
  const PreTokenizer twice = Make({{.pattern = ","},
                                   {.kind = PreTokenizeStep::Kind::kPrefixSpace, .pattern = {}},
                                   {.pattern = "b"},
                                   {.kind = PreTokenizeStep::Kind::kPrefixSpace, .pattern = {}}});
  EXPECT_EQ(Split(twice, "ab, c"), (Pieces{" a", " b", " ,", " c"}));
  EXPECT_EQ(Split(twice, ""), Pieces{});
}

TEST(PreTokenizer, ErrorsNameTheStep) {
  const auto made = PreTokenizer::Create({{.pattern = "a"}, {.pattern = R"(\w)"}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUnsupported);
  EXPECT_NE(made.error().message.find("step 2"), std::string::npos) << made.error().message;
}

// The expected pieces come from the `tokenizers` package: tools/tokenizer/make_goldens.py.
TEST(PreTokenizer, MatchesHuggingFaceOnEveryBehaviorAndConstruct) {
  const std::string path = std::string(LATTE_SOURCE_DIR) + "/tests/data/tokenizer/pretokenize.json";
  const Json golden = Json::Parse(ReadFile(path, 1 << 20).value(), "pretokenize.json").value();
  const Json texts = golden.Get("texts").value();
  const Json cases = golden.Get("cases").value();
  ASSERT_GE(cases.size(), 90u);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json list = cases.At(i).Get("steps").value();
    std::vector<PreTokenizeStep> steps;
    bool byte_level = false;
    for (size_t k = 0; k < list.size(); ++k) {
      const Status read = ReadPreTokenizeStep(list.At(k), &steps);
      ASSERT_TRUE(read) << ToString(read.error());
      byte_level = byte_level || list.At(k).GetString("type").value() == "ByteLevel";
    }
    for (const bool jit : {true, false}) {
      const auto pre_tokenizer = PreTokenizer::Create(steps, jit);
      ASSERT_TRUE(pre_tokenizer) << ToString(pre_tokenizer.error());
      for (size_t k = 0; k < texts.size(); ++k) {
        Pieces expected;
        const Json row = cases.At(i).Get("pieces")->At(k);
        for (size_t p = 0; p < row.size(); ++p) {
          expected.push_back(row.At(p).AsString().value());
          std::string bytes;
          if (byte_level && DecodeByteAlphabet(expected.back(), &bytes)) expected.back() = bytes;
        }
        const std::string text = texts.At(k).AsString().value();
        EXPECT_EQ(Split(*pre_tokenizer, text), expected)
            << "case " << i << " pattern '" << steps[0].pattern << "' text '" << text << "'";
      }
    }
  }
}

}  // namespace
}  // namespace latte::pretokenize_test
