// Tokenizers of SentencePiece's kind: "▁" for spaces, characters as first symbols, bytes as <0x0A>.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/text/tokenizer.h"
#include "src/text/tokenizer_json.h"

namespace latte::sentencepiece_test {
namespace {

using Ids = std::vector<int32_t>;

// <unk>, <s>, </s>, the 256 bytes from id 3, and `pieces` from id 259; `merges` make the longer
// ones.
JsonOut SmallFile(const std::vector<std::string>& pieces, const std::vector<std::string>& merges) {
  JsonOut vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  for (const std::string& piece : pieces) vocab[piece] = vocab.size();
  JsonOut added = JsonOut::array();
  for (const auto& [text, id] : {std::pair("<unk>", 0), {"<s>", 1}, {"</s>", 2}})
    added.push_back({{"id", id}, {"content", text}, {"special", true}, {"normalized", false}});
  const JsonOut to_mark = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  const JsonOut to_space = {{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  JsonOut decoders = JsonOut::array();
  decoders.push_back(to_space);
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  JsonOut normalizers = JsonOut::array();
  normalizers.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
  normalizers.push_back(to_mark);
  return {{"version", "1.0"},
          {"added_tokens", std::move(added)},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
          {"pre_tokenizer", nullptr},
          {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", std::move(vocab)},
            {"merges", merges}}}};
}

JsonOut Words() { return SmallFile({"▁", "a", "b", "▁a", "ab", "▁ab"}, {"▁ a", "a b", "▁a b"}); }

JsonOut WithMetaspace(JsonOut file, JsonOut metaspace) {
  file["normalizer"] = nullptr;
  metaspace["type"] = "Metaspace";
  metaspace["replacement"] = "▁";
  file["pre_tokenizer"] = std::move(metaspace);
  return file;
}

Tokenizer Load(const JsonOut& file) {
  const auto loaded = Tokenizer::FromJson(Dump(file));
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return *loaded;
}

Ids Encode(const JsonOut& file, std::string_view text) {
  return *Load(file).Encode(text, {.parse_special = true});
}

TEST(SentencePiece, SpacesBecomeMarksAndTheTextBeginsWithOne) {
  EXPECT_EQ(Encode(Words(), "ab"), (Ids{264}));
  EXPECT_EQ(Encode(Words(), "ab ab"), (Ids{264, 264}));
  EXPECT_EQ(Encode(Words(), " ab"), (Ids{259, 264}));
  EXPECT_EQ(Encode(Words(), ""), Ids());
}

// As in transformers with legacy behaviour: each text between special tokens gets a mark.
TEST(SentencePiece, TextAfterASpecialTokenBeginsWithAMark) {
  EXPECT_EQ(Encode(Words(), "ab</s>ab"), (Ids{264, 2, 264}));
}

TEST(SentencePiece, CharactersWithoutATokenBecomeBytes) {
  EXPECT_EQ(Encode(Words(), "aé"), (Ids{262, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(Encode(Words(), "\n"), (Ids{259, 3 + '\n'}));
}

TEST(SentencePiece, LongWordsHaveTheIdsOfShortOnes) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "abé";
  Ids expected = {264, 3 + 0xC3, 3 + 0xA9};
  for (int i = 1; i < 100; ++i) expected.insert(expected.end(), {263, 3 + 0xC3, 3 + 0xA9});
  EXPECT_EQ(Encode(Words(), text), expected);
}

TEST(SentencePiece, DecodingGivesTheTextBack) {
  const Tokenizer tokenizer = Load(Words());
  for (const std::string text : {"ab ab", " ab", "é\n", "a  b"})
    EXPECT_EQ(*tokenizer.Decode(*tokenizer.Encode(text)), text);
  EXPECT_EQ(tokenizer.TokenBytes(264), " ab");
  EXPECT_EQ(tokenizer.TokenBytes(3 + 0xC3), "\xC3");
  EXPECT_EQ(*tokenizer.Decode(Ids{1, 264}), "<s> ab");
  EXPECT_EQ(*tokenizer.Decode(Ids{1, 264}, /*skip_special=*/true), "ab");
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.Push(264), " ab");
}

TEST(SentencePiece, ATokenOfItsTextWinsOverTheByte) {
  EXPECT_EQ(Load(Words()).TokenId("a"), 260);
  EXPECT_EQ(Load(Words()).TokenId("c"), 3 + 'c');
}

// A token that goes on after a space: the text is one piece, not cut into words.
TEST(SentencePiece, TokensMayGoOverSpaces) {
  const JsonOut file = SmallFile({"▁", "a", "b", "a▁", "a▁b"}, {"a ▁", "a▁ b"});
  EXPECT_EQ(Encode(file, "a b"), (Ids{259, 263}));
  EXPECT_EQ(ParseTokenizerFile(Dump(file))->steps[0].cut, PreTokenizeStep::Cut::kNowhere);
  EXPECT_EQ(ParseTokenizerFile(Dump(Words()))->steps[0].cut, PreTokenizeStep::Cut::kBeforeRuns);
}

TEST(SentencePiece, RunsOfSpacesStayTogether) {
  const JsonOut file = SmallFile({"▁", "a", "▁▁", "▁▁a"}, {"▁ ▁", "▁▁ a"});
  EXPECT_EQ(Encode(file, " a"), (Ids{262}));
  EXPECT_EQ(Encode(file, "  a"), (Ids{261, 259, 260}));
}

TEST(SentencePiece, MetaspaceInsteadOfANormalizer) {
  const auto ids = [](const JsonOut& metaspace, const char* text) {
    return Encode(WithMetaspace(Words(), metaspace), text);
  };
  const JsonOut always = {{"prepend_scheme", "always"}, {"split", false}};
  EXPECT_EQ(ids(always, "ab</s>ab"), (Ids{264, 2, 264}));
  EXPECT_EQ(ids(always, " ab"), (Ids{264}));
  const JsonOut first = {{"prepend_scheme", "first"}, {"split", false}};
  EXPECT_EQ(ids(first, "ab</s>ab"), (Ids{264, 2, 263}));
  EXPECT_EQ(ids(first, "</s>ab"), (Ids{2, 263}));
  const JsonOut never = {{"prepend_scheme", "never"}, {"split", false}};
  EXPECT_EQ(ids(never, "ab"), (Ids{263}));
  EXPECT_EQ(ids({{"add_prefix_space", false}}, "ab ab"), (Ids{263, 264}));
}

TEST(SentencePiece, MetaspaceMayCutBeforeEachSpace) {
  const JsonOut file = SmallFile({"▁", "a", "▁▁", "▁a"}, {"▁ ▁", "▁ a"});
  EXPECT_EQ(Encode(WithMetaspace(file, {{"split", true}}), "  a"), (Ids{259, 262}));
  EXPECT_EQ(Encode(WithMetaspace(file, {{"split", false}}), "  a"), (Ids{261, 260}));
}

TEST(SentencePiece, WhatWouldChangeIdsIsRefused) {
  const struct {
    const char* pointer;
    JsonOut value;
    Code code;
    const char* words;
  } kCases[] = {
      {"/model/byte_fallback", false, Code::kUnsupported, "byte_fallback true"},
      {"/model/ignore_merges", true, Code::kUnsupported, "ignore_merges false"},
      {"/normalizer/normalizers/0/prepend", "_", Code::kUnsupported, "Prepend of ▁"},
      {"/normalizer/normalizers/1/content", "_", Code::kUnsupported, "Replace of a space by ▁"},
      {"/normalizer/normalizers/1/type", "Lowercase", Code::kUnsupported, "'Lowercase'"},
      {"/normalizer", {{"type", "Prepend"}, {"prepend", "▁"}}, Code::kUnsupported, "at the end"},
      {"/normalizer", nullptr, Code::kUnsupported, "writes ▁ for spaces"},
      {"/pre_tokenizer", {{"type", "Metaspace"}}, Code::kUnsupported, "no pre_tokenizer"},
      {"/decoder/decoders/0/content", "_", Code::kUnsupported, "Replace of ▁ by a space"},
      {"/decoder/decoders/3/start", 2, Code::kUnsupported, "Strip of one space"},
      {"/decoder", {{"type", "ByteFallback"}}, Code::kUnsupported, "Replace of ▁ by a space"},
      {"/added_tokens/1/normalized", true, Code::kUnsupported, "'<s>': expected normalized false"},
      {"/model/vocab/<0x41>", nullptr, Code::kCorrupt, "<0x41>"},
  };
  for (const auto& bad : kCases) {
    SCOPED_TRACE(bad.words);
    JsonOut file = Words();
    file[JsonOut::json_pointer(bad.pointer)] = bad.value;
    const auto parsed = ParseTokenizerFile(Dump(file));
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().code, bad.code) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(bad.words), std::string::npos) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find("tokenizer.json"), std::string::npos);
  }
  JsonOut file = Words();
  file["model"]["vocab"].erase("<0x41>");
  EXPECT_NE(ParseTokenizerFile(Dump(file)).error().message.find("byte_fallback needs all 256"),
            std::string::npos);
  const JsonOut scheme = WithMetaspace(Words(), {{"prepend_scheme", "last"}});
  EXPECT_NE(ParseTokenizerFile(Dump(scheme)).error().message.find("'last'"), std::string::npos);
}

}  // namespace
}  // namespace latte::sentencepiece_test
