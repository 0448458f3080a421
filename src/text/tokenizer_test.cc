#include "src/text/tokenizer.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "tests/support/golden_strings.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::tokenizer_test {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer Load(const JsonOut& file, std::string_view config = {}) {
  Result<Tokenizer> out = Tokenizer::FromJson(Dump(file), config);
  EXPECT_TRUE(out) << ToString(out.error());
  return *std::move(out);
}

// <s> 257 and </s> 258 are special, <tool> 259 is not; "ab" is 256.
Tokenizer WithSpecials() {
  JsonOut file = SmallTokenizer({"a b"});
  AddToken(&file, "<s>");
  AddToken(&file, "</s>");
  AddToken(&file, "<tool>", {{"special", false}});
  return Load(file, R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": true,
                        "chat_template": "{{ x }}"})");
}

TEST(Tokenizer, KnowsItsSpecialTokens) {
  const Tokenizer tokenizer = WithSpecials();
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.bos_id(), 257);
  EXPECT_EQ(tokenizer.eos_id(), 258);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_EQ(tokenizer.chat_template(), "{{ x }}");
  EXPECT_EQ(tokenizer.TokenId("</s>"), 258);
  EXPECT_EQ(tokenizer.TokenId("ab"), 256);
  EXPECT_EQ(tokenizer.TokenId(" "), ' ');
  EXPECT_EQ(tokenizer.TokenId("abc"), std::nullopt);
  EXPECT_EQ(tokenizer.TokenId(""), std::nullopt);
  EXPECT_TRUE(tokenizer.IsSpecial(257));
  EXPECT_FALSE(tokenizer.IsSpecial(259));
  EXPECT_FALSE(tokenizer.IsSpecial(-1) || tokenizer.IsSpecial(260));
}

TEST(Tokenizer, TextOfSpecialTokensIsPlainUnlessAskedFor) {
  const Tokenizer tokenizer = WithSpecials();
  EXPECT_EQ(*tokenizer.Encode("ab<s>"), (Ids{256, '<', 's', '>'}));
  EXPECT_EQ(*tokenizer.Encode("ab<s>", {.parse_special = true}), (Ids{256, 257}));
  EXPECT_EQ(*tokenizer.Encode("ab", {.add_bos = true}), (Ids{257, 256}));
}

TEST(Tokenizer, OtherAddedTokensAreParsedUnlessSwitchedOff) {
  const Tokenizer tokenizer = WithSpecials();
  EXPECT_EQ(*tokenizer.Encode("<tool>"), (Ids{259}));
  EXPECT_EQ(tokenizer.Encode("<tool>", {.parse_added = false})->size(), 6u);
  EXPECT_EQ(*tokenizer.Encode("<s>", {.parse_special = true, .parse_added = false}), (Ids{257}));
}

TEST(Tokenizer, LongestAddedTokenWinsAtTheLeftmostPlace) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<a>");      // 256
  AddToken(&file, "<a>b");     // 257
  AddToken(&file, "b<a>bcd");  // 258
  const Tokenizer tokenizer = Load(file);
  const EncodeOptions parse{.parse_special = true};
  EXPECT_EQ(*tokenizer.Encode("<a><a>b<a>bc", parse), (Ids{256, 257, 257, 'c'}));
  EXPECT_EQ(*tokenizer.Encode("xb<a>bcd", parse), (Ids{'x', 258}));
  EXPECT_EQ(*tokenizer.Encode("<a", parse), (Ids{'<', 'a'}));
}

TEST(Tokenizer, StripsAndWordLimitsOfAddedTokens) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<l>", {{"lstrip", true}});                            // 256
  AddToken(&file, "<r>", {{"rstrip", true}});                            // 257
  AddToken(&file, "wd", {{"single_word", true}, {"normalized", true}});  // 258
  const Tokenizer tokenizer = Load(file);
  const EncodeOptions parse{.parse_special = true};
  EXPECT_EQ(*tokenizer.Encode("x \u3000<l> y", parse), (Ids{'x', 256, ' ', 'y'}));
  EXPECT_EQ(*tokenizer.Encode("x <r>\n\u2003y", parse), (Ids{'x', ' ', 257, 'y'}));
  EXPECT_EQ(*tokenizer.Encode("<r> <l>", parse), (Ids{257, 256}));
  EXPECT_EQ(*tokenizer.Encode("wd-wd_ wd", parse), (Ids{258, '-', 'w', 'd', '_', ' ', 258}));
  EXPECT_EQ(tokenizer.Encode("éwd", parse)->back(), 'd');
}

TEST(Tokenizer, IgnoreMergesTakesWholePiecesButNeverASpecialToken) {
  JsonOut file = SmallTokenizer({"a b", "c d", "ab cd"});
  file["model"]["merges"] = {"a b"};
  file["model"]["ignore_merges"] = true;
  file["added_tokens"].push_back({{"id", 257}, {"content", "cd"}, {"special", true}});
  const Tokenizer tokenizer = Load(file);
  EXPECT_EQ(*tokenizer.Encode("abcd"), (Ids{258}));
  EXPECT_EQ(*tokenizer.Encode("cd"), (Ids{'c', 'd'}));
  EXPECT_EQ(*tokenizer.Encode("abab"), (Ids{256, 256}));
  file["model"]["ignore_merges"] = false;
  EXPECT_EQ(*Load(file).Encode("abcd"), (Ids{256, 'c', 'd'}));
}

TEST(Tokenizer, InvalidUtf8IsReplacedBeforeEncoding) {
  const Tokenizer tokenizer = WithSpecials();
  EXPECT_EQ(*tokenizer.Encode("ab\xF0\x9F"), *tokenizer.Encode("ab\uFFFD"));
  EXPECT_EQ(*tokenizer.Decode(*tokenizer.Encode("\xFF")), "\uFFFD");
  EXPECT_EQ(*tokenizer.Encode(""), Ids{});
}

TEST(Tokenizer, DecodeChecksIdsAndMaySkipSpecialTokens) {
  const Tokenizer tokenizer = WithSpecials();
  EXPECT_EQ(*tokenizer.Decode(Ids{257, 256, 259, 258}), "<s>ab<tool></s>");
  EXPECT_EQ(*tokenizer.Decode(Ids{257, 256, 259, 258}, /*skip_special=*/true), "ab<tool>");
  EXPECT_EQ(*tokenizer.Decode(Ids{0xF0, 0x9F}), "\xF0\x9F");
  for (const int32_t id : {-1, 260, INT32_MAX, INT32_MIN}) {
    const auto text = tokenizer.Decode(Ids{256, id});
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, Code::kInvalidArgument);
    EXPECT_NE(text.error().message.find("at place 1: expected 0 to 259"), std::string::npos);
    EXPECT_EQ(tokenizer.TokenBytes(id), "");
  }
}

TEST(Tokenizer, AddedTextInTheByteAlphabetStandsForItself) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "éà");
  EXPECT_EQ(Load(file).TokenBytes(256), "éà");
}

TEST(Tokenizer, AnIdWithoutATokenDecodesToNothing) {
  JsonOut file = SmallTokenizer({"a b"});
  file["model"]["vocab"]["ab"] = 300;
  const Tokenizer tokenizer = Load(file);
  EXPECT_EQ(*tokenizer.Decode(Ids{'x', 299, 300}), "xab");
}

TEST(Tokenizer, BosMustExist) {
  const Tokenizer tokenizer = Load(SmallTokenizer());
  const auto ids = tokenizer.Encode("a", {.add_bos = true});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, Code::kInvalidArgument);
  const auto missing = Tokenizer::FromJson(Dump(SmallTokenizer()),
                                           R"({"bos_token": "<none>", "add_bos_token": true})");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kCorrupt);
  EXPECT_NE(missing.error().message.find("'bos_token' is '<none>'"), std::string::npos);
}

TEST(Tokenizer, TheTemplateOfThePostProcessorNamesBos) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<s>");
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", JsonOut::array({{{"SpecialToken", {{"id", "<s>"}}}},
                                                       {{"Sequence", {{"id", "A"}}}}})}};
  EXPECT_EQ(Load(file).bos_id(), 256);
  EXPECT_TRUE(Load(file).adds_bos());
  EXPECT_FALSE(Load(file, R"({"add_bos_token": false})").adds_bos());
}

TEST(Tokenizer, PatternsThatCannotBeHadNameTheFileAndTheStep) {
  JsonOut file = SmallTokenizer();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       JsonOut::array({{{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}},
                       file["pre_tokenizer"]})}};
  const auto loaded = Tokenizer::FromJson(Dump(file));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::kUnsupported);
  EXPECT_TRUE(loaded.error().message.starts_with("tokenizer.json: pre_tokenizer step 1:"))
      << loaded.error().message;
}

class TokenizerFolder : public testing::Test {
 protected:
  TokenizerFolder() { std::filesystem::create_directory(dir_); }
  ~TokenizerFolder() override { std::filesystem::remove_all(dir_); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(dir_ + "/" + name, std::as_bytes(std::span(text))));
  }
  const std::string dir_ = testing::TempDir() + "/tokenizer_test_" + std::to_string(getpid());
};

TEST_F(TokenizerFolder, OnlyTokenizerJsonIsRequired) {
  const auto missing = Tokenizer::Load(dir_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find("tokenizer.json"), std::string::npos);
  Write("tokenizer.json", Dump(SmallTokenizer()));
  EXPECT_EQ(Tokenizer::Load(dir_)->chat_template(), "");
  Write("tokenizer_config.json", R"({"chat_template": "from the config"})");
  EXPECT_EQ(Tokenizer::Load(dir_)->chat_template(), "from the config");
  Write("chat_template.jinja", "from the file");
  EXPECT_EQ(Tokenizer::Load(dir_)->chat_template(), "from the file");
  Write("tokenizer_config.json", "{");
  const auto broken = Tokenizer::Load(dir_);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find(dir_ + "/tokenizer_config.json"), std::string::npos)
      << broken.error().message;
}

TEST_F(TokenizerFolder, FilesAreBounded) {
  Write("tokenizer.json", Dump(SmallTokenizer()));
  std::filesystem::resize_file(dir_ + "/tokenizer.json", (256 << 20) + 1);  // a hole
  const auto large = Tokenizer::Load(dir_);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kCorrupt);
  EXPECT_NE(large.error().message.find("at most 268435456 bytes"), std::string::npos)
      << large.error().message;
}

TEST(Tokenizer, ManyThreadsShareOne) {
  const Tokenizer tokenizer = WithSpecials();
  const std::string text = "ab <s> ab</s>\xFF";
  const Ids expected = *tokenizer.Encode(text, {.parse_special = true});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i)
        wrong[t] += *tokenizer.Encode(text, {.parse_special = true}) == expected ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

std::string PushAll(StreamDecoder* stream, const Ids& ids) {
  std::string out;
  for (const int32_t id : ids) out += stream->Push(id);
  return out;
}

TEST(StreamDecoder, HoldsACodePointUntilItsLastByte) {
  const Tokenizer tokenizer = WithSpecials();
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.Push('x'), "x");
  EXPECT_EQ(stream.Push(0xF0), "");
  EXPECT_EQ(stream.Push(0x9F), "");
  EXPECT_EQ(stream.Push(0x98), "");
  EXPECT_EQ(stream.Push(0x80), "😀");
  EXPECT_EQ(stream.Push(259), "<tool>");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(StreamDecoder, WhatIsLeftUnfinishedBecomesOneReplacement) {
  StreamDecoder stream(WithSpecials());
  EXPECT_EQ(PushAll(&stream, {0xF0, 0x9F, 0x98}), "");
  EXPECT_EQ(stream.Flush(), "\uFFFD");
  EXPECT_EQ(stream.Flush(), "");
  EXPECT_EQ(PushAll(&stream, {0xE2, 0x82}), "");
  EXPECT_EQ(stream.Push(256), "\uFFFDab");
  EXPECT_EQ(stream.Push(0x80), "\uFFFD");
}

TEST(StreamDecoder, UnknownIdsAddNothingAndSpecialOnesMayBeSkipped) {
  StreamDecoder all(WithSpecials());
  EXPECT_EQ(PushAll(&all, {-1, 1 << 30, 258}), "</s>");
  StreamDecoder visible(WithSpecials(), /*skip_special=*/true);
  EXPECT_EQ(PushAll(&visible, {0xC3, 258, 0xA9}), "é");
}

// For any bytes and any cuts, the output is valid UTF-8 and adds up to the repaired bytes.
TEST(StreamDecoder, PiecesAreValidAndAddUp) {
  JsonOut file = SmallTokenizer({"ð Ł", "ĺ Ģ", "a ð", "Ģ b"});
  const Tokenizer tokenizer = Load(file);
  Lcg rng(11);
  const uint8_t bytes[] = {'a',  'b',  0xF0, 0x9F, 0x98, 0x80, 0xC3,
                           0xA9, 0xE2, 0x82, 0xAC, 0xFF, 0xED};
  for (int round = 0; round < 20000; ++round) {
    StreamDecoder stream(tokenizer);
    std::string raw, streamed;
    for (uint64_t count = rng.Below(12); count > 0; --count) {
      const int32_t id = rng.Below(3) == 0 ? static_cast<int32_t>(256 + rng.Below(4))
                                           : bytes[rng.Below(std::size(bytes))];
      raw += tokenizer.TokenBytes(id);
      const std::string piece = stream.Push(id);
      ASSERT_EQ(ValidUtf8Prefix(piece), piece.size());
      streamed += piece;
    }
    std::string repaired;
    AppendValidUtf8(raw, &repaired);
    ASSERT_EQ(streamed + stream.Flush(), repaired);
  }
}

TEST(Tokenizer, AWordOfMoreThanAMebibyteIsRefused) {
  const Tokenizer tokenizer = Load(SmallTokenizer());
  const size_t most = 1 << 20;
  EXPECT_TRUE(tokenizer.Encode(std::string(most, 'a')));
  const auto refused = tokenizer.Encode(std::string(most + 1, 'a'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("1048577 bytes"), std::string::npos);
  const std::string tiny = std::string(LATTE_SOURCE_DIR) + "/models/tiny";
  std::string lines;  // as many bytes in several words
  while (lines.size() < most + 1) lines += "a line of words\n";
  EXPECT_TRUE(Tokenizer::Load(tiny).value().Encode(lines));
}

TEST(Tokenizer, TheLongestTokenBoundsTheTokensOfAText) {
  JsonOut file = SmallTokenizer();
  const Tokenizer plain = Load(file);
  size_t longest = 0;
  for (int32_t id = 0; id < plain.vocab_size(); ++id)
    longest = std::max(longest, plain.TokenBytes(id).size());
  EXPECT_EQ(plain.max_token_bytes(), longest);
  AddToken(&file, "<l>", {{"lstrip", true}});
  EXPECT_EQ(Load(file).max_token_bytes(), 0) << "one token takes any number of spaces";
}

}  // namespace
}  // namespace latte::tokenizer_test
