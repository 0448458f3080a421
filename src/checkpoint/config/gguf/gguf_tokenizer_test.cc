#include "src/checkpoint/config/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/checkpoint/gguf/gguf_header.h"
#include "tests/support/checkpoint/gguf_vocabulary.h"
#include "tests/support/golden_strings.h"

namespace latte::gguf_tokenizer_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions
using Ids = std::vector<int32_t>;

constexpr uint64_t kTexts = 500;
constexpr EncodeOptions kPlain = {.parse_special = false, .parse_added = false};
constexpr EncodeOptions kParsed = {.parse_special = true, .parse_added = true};

Result<Tokenizer> Parse(const GgufModel& model) {
  const std::string bytes = model.Bytes();
  const std::string path = "m.gguf";
  const auto header = ParseGgufHeader(std::as_bytes(std::span(bytes)), path);
  if (!header) return tl::unexpected(header.error());
  return ParseGgufTokenizer(header->metadata);
}

Tokenizer Made(const GgufModel& model) {
  Result<Tokenizer> out = Parse(model);
  EXPECT_TRUE(out) << ToString(out.error());
  return std::move(out).value();
}

std::string Without(std::string text, const std::string& part, const std::string& instead) {
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += instead.size())
    text.replace(at, part.size(), instead);
  return text;
}

std::vector<std::string> Texts() {
  const std::string path = std::string(LATTE_SOURCE_DIR) + "/tests/data/tokenizer/fragments.hex";
  std::istringstream lines(ReadFile(path, 1 << 20).value());
  std::vector<std::string> fragments;
  for (std::string line; std::getline(lines, line);) {
    std::string& bytes = fragments.emplace_back();
    for (size_t i = 0; i + 1 < line.size(); i += 2)
      bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
  }
  std::vector<std::string> out;
  for (uint64_t i = 0; i < kTexts; ++i) out.push_back(GoldenText(i, fragments));
  return out;
}

void ExpectSame(const Tokenizer& found, const Tokenizer& expected) {
  ASSERT_EQ(found.vocab_size(), expected.vocab_size());
  EXPECT_EQ(found.AddedIds(), expected.AddedIds());
  EXPECT_EQ(found.bos_id(), expected.bos_id());
  EXPECT_EQ(found.eos_id(), expected.eos_id());
  for (int32_t id = 0; id < expected.vocab_size(); ++id)
    ASSERT_EQ(found.TokenBytes(id), expected.TokenBytes(id)) << id;
  for (const std::string& text : Texts())
    for (const EncodeOptions& options : {kPlain, kParsed}) {
      const Ids ids = found.Encode(text, options).value();
      ASSERT_EQ(ids, expected.Encode(text, options).value()) << text;
      ASSERT_EQ(found.Decode(ids).value(), expected.Decode(ids).value()) << text;
    }
}

std::string ReadOf(const std::string& dir, const char* file) {
  return ReadFile(dir + "/" + file, 64 << 20).value();
}

const std::string kTestData = std::string(LATTE_SOURCE_DIR) + "/tests/data/tokenizer/";

// Added tokens that take white space or stand alone are not in the format.
std::string PlainV2Style() {
  std::string json = ReadOf(kTestData + "v2_style", "tokenizer.json");
  for (const char* key : {"single_word", "lstrip", "rstrip"})
    json = Without(json, fmt::format("\"{}\": true", key), fmt::format("\"{}\": false", key));
  return json;
}

TEST(GgufTokenizer, IdsAreThoseOfDeepSeekV2sFiles) {
  const std::string json = PlainV2Style();
  const Tokenizer expected =
      Tokenizer::FromJson(json, ReadOf(kTestData + "v2_style", "tokenizer_config.json")).value();
  const auto merges = MergesOf(Json::Parse(json, "tokenizer.json").value());
  ExpectSame(Made(ConvertedVocabulary(expected, "deepseek-llm", merges).Model()), expected);
}

TEST(GgufTokenizer, IdsAreThoseOfKimisFiles) {
  const Tokenizer expected = Tokenizer::Load(kTestData + "kimi_style").value();
  GgufVocabularyArrays arrays = ConvertedVocabulary(expected, "kimi-k2", {});
  while (arrays.types.back() == 5) arrays.tokens.pop_back(), arrays.types.pop_back();
  ExpectSame(Made(arrays.Model()), expected);
  arrays.merges = {"x"};  // not used
  GgufModel m = arrays.Model();
  EXPECT_EQ(Made(m).Encode("Hello").value(), expected.Encode("Hello").value());
  m.entries.erase("tokenizer.ggml.merges");
  EXPECT_TRUE(Parse(m));
}

TEST(GgufTokenizer, IdsAreThoseOfDeepSeekV3sFiles) {
  const char* folder = std::getenv("LATTE_TEST_TOKENIZER_DIR");
  if (folder == nullptr) GTEST_SKIP() << "LATTE_TEST_TOKENIZER_DIR is not set";
  const Tokenizer expected = Tokenizer::Load(folder).value();
  const Json json = Json::Parse(ReadOf(folder, "tokenizer.json"), "tokenizer.json").value();
  GgufModel m = ConvertedVocabulary(expected, "deepseek-v3", MergesOf(json)).Model();
  m.Bool("tokenizer.ggml.add_bos_token", true);
  m.Text("tokenizer.chat_template", expected.chat_template());
  const Tokenizer found = Made(m);
  ExpectSame(found, expected);
  EXPECT_TRUE(found.adds_bos());
  EXPECT_EQ(found.chat_template(), expected.chat_template());
  // The converter marks it as a control token.
  EXPECT_TRUE(found.IsSpecial(128803));
  EXPECT_FALSE(expected.IsSpecial(128803));
}

// A whole piece that is a token needs no merges, in the tokenizers that say so.
TEST(GgufTokenizer, MergesAreIgnoredAsThePublishedTokenizersDo) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  arrays.merges.clear();
  for (const char* name : {"glm4", "chatglm-bpe", "tekken", "youtu"}) {
    arrays.pre = name;
    EXPECT_EQ(Made(arrays.Model()).Encode("ab").value(), Ids{256}) << name;
  }
  for (const char* name :
       {"deepseek-v3", "deepseek-llm", "deepseek-coder", "joyai-llm", "gigachat", "a.x-4.0"}) {
    arrays.pre = name;
    EXPECT_EQ(Made(arrays.Model()).Encode("ab").value(), (Ids{'a', 'b'})) << name;
  }
}

TEST(GgufTokenizer, TypesOfTokens) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  arrays.types['z'] = 6;  // a byte
  arrays.Add("<unk>", 2);
  const Tokenizer tokenizer = Made(arrays.Model());
  EXPECT_EQ(tokenizer.vocab_size(), 262);
  EXPECT_EQ(tokenizer.AddedIds(), (Ids{257, 258, 259, 261}));
  EXPECT_TRUE(tokenizer.IsSpecial(257));
  EXPECT_FALSE(tokenizer.IsSpecial(259));
  EXPECT_TRUE(tokenizer.IsSpecial(261));
  EXPECT_EQ(tokenizer.TokenBytes(260), "");  // unused
  EXPECT_EQ(tokenizer.Encode("z<s>ab<user><unk>", kParsed).value(), (Ids{'z', 257, 256, 259, 261}));
  EXPECT_EQ(tokenizer.Encode("<s>").value(), (Ids{'<', 's', '>'}));
  EXPECT_EQ(tokenizer.Encode("<user>").value(), Ids{259});
  EXPECT_EQ(tokenizer.Decode(Ids{257, 256, 260}, /*skip_special=*/true).value(), "ab");
}

// Added tokens stand behind the vocabulary in the published files: as plain text they are no piece
// that is a token.
TEST(GgufTokenizer, TextOfAnAddedTokenIsPlainIfAddedTokensAreNotParsed) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  arrays.pre = "glm4";
  arrays.tokens[259] = "/nothink";
  EXPECT_EQ(Made(arrays.Model()).Encode("/nothink", kPlain).value().size(), 8u);
  EXPECT_EQ(Made(arrays.Model()).Encode("/nothink").value(), Ids{259});
}

TEST(GgufTokenizer, PromptsBeginWithBosWhereTheFileOrThePublishedTokenizerSaysSo) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  GgufModel m = arrays.Model();
  EXPECT_FALSE(Made(m).adds_bos());
  EXPECT_EQ(Made(m).Encode("a", {.add_bos = true}).value(), (Ids{257, 'a'}));
  m.Bool("tokenizer.ggml.add_bos_token", true);
  EXPECT_TRUE(Made(m).adds_bos());
  arrays.pre = "tekken";
  m = arrays.Model();
  EXPECT_TRUE(Made(m).adds_bos());
  m.Bool("tokenizer.ggml.add_bos_token", false);
  EXPECT_FALSE(Made(m).adds_bos());
  arrays.bos = -1;
  m = arrays.Model();
  EXPECT_FALSE(Made(m).adds_bos());
  const auto ids = Made(m).Encode("a", {.add_bos = true});
  ASSERT_FALSE(ids);
  EXPECT_NE(ids.error().message.find("has no BOS token"), std::string::npos);
}

TEST(GgufTokenizer, TokensWithARoleMayBeOfAnyType) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  arrays.tokens[0] = InByteAlphabet(" x");
  arrays.Add(std::string(ByteAlphabetSymbol(0)), 1);
  arrays.bos = 0;
  GgufModel m = arrays.Model();
  m.U32("tokenizer.ggml.padding_token_id", 258);
  const Tokenizer tokenizer = Made(m);
  EXPECT_EQ(tokenizer.bos_id(), 0);
  EXPECT_EQ(tokenizer.eos_id(), 258);
  EXPECT_EQ(tokenizer.pad_id(), 258);
}

TEST(GgufTokenizer, NamedTemplatesAreThoseOfTheFolder) {
  GgufModel m = SmallGgufVocabulary().Model();
  EXPECT_EQ(Made(m).chat_template(), "");
  EXPECT_TRUE(Made(m).CheckChatTemplate());
  m.Text("tokenizer.chat_template", "main {{ x }}");
  EXPECT_EQ(Made(m).chat_template(), "main {{ x }}");
  EXPECT_TRUE(Made(m).unused_chat_templates().empty());
  m.Text("tokenizer.chat_template.rag", "rag");
  m.Text("tokenizer.chat_template.default", "another");
  EXPECT_EQ(Made(m).chat_template(), "main {{ x }}");
  ASSERT_EQ(Made(m).unused_chat_templates().size(), 1u);
  EXPECT_EQ(Made(m).unused_chat_templates()[0].find(
                "'rag' of m.gguf, its metadata as tokenizer_config.json"),
            0u);
  m.entries.erase("tokenizer.chat_template");
  EXPECT_EQ(Made(m).chat_template(), "another");
  m.entries.erase("tokenizer.chat_template.default");
  const Status problem = Made(m).CheckChatTemplate();
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().message.find("m.gguf, its metadata as "), 0u);
  EXPECT_NE(problem.error().message.find("named 'default', found 'rag'"), std::string::npos);
}

}  // namespace
}  // namespace latte::gguf_tokenizer_test
