// Splits generated texts as Python's `regex` does with the patterns of the published tokenizers.
// tools/gguf/make_split_goldens.py writes the expected hashes.
#include "src/checkpoint/config/gguf/gguf_splitting.h"

#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/text/pretokenize.h"
#include "src/text/tokenizer_tiktoken.h"
#include "tests/support/checkpoint/gguf_vocabulary.h"
#include "tests/support/golden_strings.h"

namespace latte::gguf_splitting_test {
namespace {

const std::string kData = std::string(LATTE_SOURCE_DIR) + "/tests/data/";

std::vector<std::string> Fragments() {
  std::istringstream lines(ReadFile(kData + "tokenizer/fragments.hex", 1 << 20).value());
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) {
    std::string bytes;
    for (size_t i = 0; i + 1 < line.size(); i += 2)
      bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    out.push_back(std::move(bytes));
  }
  return out;
}

// The steps for tiktoken.model are not in the table.
std::vector<PreTokenizeStep> TiktokenSteps() {
  std::string bytes;  // the 256 tokens of one byte
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t byte = 0; byte < 256; ++byte)
    bytes += fmt::format("{}{}== {}\n", kDigits[byte >> 2], kDigits[byte << 4 & 63], byte);
  return ParseTiktokenFile(bytes, R"({"added_tokens_decoder": {}})").value().steps;
}

PreTokenizer Splitter(const GgufSplitting& splitting) {
  std::vector<PreTokenizeStep> steps;
  if (splitting.is_tiktoken) steps = TiktokenSteps();
  for (const std::string_view pattern : splitting.patterns)
    steps.push_back({.pattern = std::string(pattern)});
  return PreTokenizer::Create(steps).value();
}

TEST(GgufSplitting, PiecesAreThoseOfThePublishedPatterns) {
  const Json golden =
      Json::Parse(ReadFile(kData + "gguf_splits.json", 1 << 20).value(), "gguf_splits.json")
          .value();
  std::set<int64_t> skipped;
  const Json skips = golden.Get("skipped").value();
  for (size_t i = 0; i < skips.size(); ++i) skipped.insert(skips.At(i).AsInt().value());
  const int64_t texts = golden.GetInt("texts").value(), block = golden.GetInt("block").value();
  EXPECT_GE(texts - static_cast<int64_t>(skipped.size()), 10'000);
  const std::vector<std::string> fragments = Fragments();
  const Json splits = golden.Get("splits").value();
  EXPECT_EQ(splits.size(), 8u);
  const Status checked = splits.ForEachMember([&](const std::string& name,
                                                  const Json& v) -> Status {
    const GgufSplitting* splitting = FindGgufSplitting(name);
    if (splitting == nullptr) return Corrupt(name);
    const PreTokenizer splitter = Splitter(*splitting);
    PreTokenizer::Scratch scratch(splitter);
    for (int64_t begin = 0; begin < texts; begin += block) {
      uint64_t hash = 0xCBF29CE484222325u;
      const auto add = [&hash](uint64_t number) { hash = (hash ^ number) * 0x100000001B3u; };
      for (int64_t i = begin; i < begin + block; ++i) {
        if (skipped.contains(i)) continue;
        std::string text;
        AppendValidUtf8(RandomText(static_cast<uint64_t>(i), fragments), &text);
        LATTE_RETURN_IF_ERROR(splitter.Split(text, &scratch, [&](std::string_view piece) -> Status {
          add(piece.size());
          return {};
        }));
        add(0);
      }
      const auto at = static_cast<size_t>(begin / block);
      EXPECT_EQ(fmt::format("{:016x}", hash), v.At(at).AsString().value())
          << name << ", texts from " << begin;
    }
    return {};
  });
  EXPECT_TRUE(checked) << ToString(checked.error());
}

TEST(GgufSplitting, SomeNamesMeanTheSame) {
  EXPECT_EQ(FindGgufSplitting("joyai-llm")->patterns.data(),
            FindGgufSplitting("deepseek-v3")->patterns.data());
  EXPECT_EQ(FindGgufSplitting("chatglm-bpe")->patterns.data(),
            FindGgufSplitting("glm4")->patterns.data());
  EXPECT_EQ(FindGgufSplitting("a.x-4.0")->patterns.data(),
            FindGgufSplitting("gigachat")->patterns.data());
  EXPECT_EQ(FindGgufSplitting("default"), nullptr);
  EXPECT_EQ(FindGgufSplitting(""), nullptr);
}

}  // namespace
}  // namespace latte::gguf_splitting_test
