#include "src/text/tokenizer_json.h"

#include <functional>

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::tokenizer_json_test {
namespace {

using Change = std::function<void(JsonOut&)>;

struct Row {
  const char* name;
  Change change;
  Code code;
  const char* words;  // a part of the message
};

void ExpectRefused(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    JsonOut file = SmallTokenizer({"a b", "ab c"});
    AddToken(&file, "<s>");
    row.change(file);
    const auto parsed = ParseTokenizerFile(Dump(file));
    ASSERT_FALSE(parsed) << row.name;
    EXPECT_EQ(parsed.error().code, row.code) << row.name;
    EXPECT_NE(parsed.error().message.find("tokenizer.json"), std::string::npos) << row.name;
    EXPECT_NE(parsed.error().message.find(row.words), std::string::npos)
        << row.name << ": " << parsed.error().message;
  }
}

TEST(TokenizerFile, ReadsASmallOne) {
  JsonOut json = SmallTokenizer({"a b", "Ġ ab"});
  AddToken(&json, "<s>", {{"lstrip", true}, {"special", false}});
  const auto file = ParseTokenizerFile(Dump(json));
  ASSERT_TRUE(file) << ToString(file.error());
  ASSERT_EQ(file->token_bytes.size(), 259u);
  EXPECT_EQ(file->token_bytes[257], " ab");
  EXPECT_EQ(file->token_bytes[258], "<s>");
  EXPECT_EQ(file->byte_tokens['a'], 'a');
  ASSERT_EQ(file->merges.size(), 2u);
  EXPECT_EQ(file->merges[1].left, ' ');
  EXPECT_EQ(file->merges[1].right, 256);
  EXPECT_EQ(file->merges[1].result, 257);
  ASSERT_EQ(file->added.size(), 1u);
  EXPECT_TRUE(file->added[0].lstrip && !file->added[0].rstrip && !file->added[0].special);
}

TEST(TokenizerFile, MergesMayBePairs) {
  JsonOut json = SmallTokenizer({"a b"});
  json["model"]["merges"] = JsonOut::array({JsonOut::array({"a", "b"})});
  const auto file = ParseTokenizerFile(Dump(json));
  ASSERT_TRUE(file) << ToString(file.error());
  EXPECT_EQ(file->merges[0].result, 256);
}

TEST(TokenizerFile, SmallHolesInTheIdsAreNoTokens) {
  JsonOut json = SmallTokenizer({"a b"});
  json["model"]["vocab"]["ab"] = 260;
  const auto file = ParseTokenizerFile(Dump(json));
  ASSERT_TRUE(file) << ToString(file.error());
  EXPECT_EQ(file->token_bytes.size(), 261u);
  EXPECT_EQ(file->token_bytes[258], "");
  EXPECT_EQ(file->merges[0].result, 260);
}

TEST(TokenizerFile, BadVocabulariesAreCorrupt) {
  const auto id = [](const JsonOut& value) {
    return [value](JsonOut& file) { file["model"]["vocab"]["ab"] = value; };
  };
  ExpectRefused({
      {"duplicate id", id(255), Code::kCorrupt, "taken by another token"},
      {"negative id", id(-1), Code::kCorrupt, "id -1"},
      {"huge id", id(int64_t{1} << 40), Code::kCorrupt, "1099511627776"},
      {"gap beyond the tokens", id(258 * 2 + 256), Code::kCorrupt, "as there are 258 tokens"},
      {"fraction", id(1.5), Code::kCorrupt, "model.vocab.ab"},
      {"text", id("7"), Code::kCorrupt, "model.vocab.ab"},
      {"no vocab", [](JsonOut& f) { f["model"].erase("vocab"); }, Code::kCorrupt, "'vocab'"},
      {"vocab is a list", [](JsonOut& f) { f["model"]["vocab"] = {1}; }, Code::kCorrupt, "object"},
      {"byte missing", [](JsonOut& f) { f["model"]["vocab"].erase("Ġ"); }, Code::kCorrupt,
       "no token for byte 0x20"},
  });
}

TEST(TokenizerFile, BadMergesAreCorrupt) {
  const auto merge = [](const JsonOut& value) {
    return [value](JsonOut& file) { file["model"]["merges"].push_back(value); };
  };
  ExpectRefused({
      {"no space", merge("ab"), Code::kCorrupt, "model.merges.2"},
      {"three parts", merge("a b c"), Code::kCorrupt, "model.merges.2"},
      {"empty part", merge("a "), Code::kCorrupt, "model.merges.2"},
      {"pair of three", merge({"a", "b", "c"}), Code::kCorrupt, "model.merges.2"},
      {"pair of numbers", merge({1, 2}), Code::kCorrupt, "model.merges.2"},
      {"number", merge(7), Code::kCorrupt, "model.merges.2"},
      {"unknown left", merge("zz a"), Code::kCorrupt, "'zz'"},
      {"unknown right", merge("a zz"), Code::kCorrupt, "'zz'"},
      {"unknown result", merge("a c"), Code::kCorrupt, "'ac'"},
      {"no list", [](JsonOut& f) { f["model"]["merges"] = "a b"; }, Code::kCorrupt, "array"},
      {"none", [](JsonOut& f) { f["model"].erase("merges"); }, Code::kCorrupt, "'merges'"},
  });
}

TEST(TokenizerFile, BadAddedTokensAreCorrupt) {
  const auto set = [](const char* key, const JsonOut& value) {
    return [key, value](JsonOut& file) { file["added_tokens"][0][key] = value; };
  };
  ExpectRefused({
      {"empty", set("content", ""), Code::kCorrupt, "added_tokens.0"},
      {"10 MB", set("content", std::string(10 << 20, 'a')), Code::kCorrupt, "found 10485760"},
      {"id of another", set("id", 5), Code::kCorrupt, "expected 258"},
      {"id after a gap", set("id", 300), Code::kCorrupt, "expected 258"},
      {"huge id", set("id", int64_t{1} << 40), Code::kCorrupt, "expected 258"},
      {"negative id", set("id", -1), Code::kCorrupt, "expected 258"},
      {"id contradicts vocab", set("content", "ab"), Code::kCorrupt, "its id in 'model.vocab'"},
      {"flag is text", set("special", "yes"), Code::kCorrupt, "added_tokens.0.special"},
      {"twice", [](JsonOut& f) { AddToken(&f, "<s>"); }, Code::kCorrupt, "stands twice"},
      {"no list", [](JsonOut& f) { f["added_tokens"] = 7; }, Code::kCorrupt, "array"},
  });
}

TEST(TokenizerFile, WhatWouldChangeIdsIsRefusedByName) {
  const auto set = [](const char* pointer, const JsonOut& value) {
    return [pointer, value](JsonOut& file) { file[JsonOut::json_pointer(pointer)] = value; };
  };
  const JsonOut byte_level = {{"type", "ByteLevel"}};
  const auto sequence = [](const JsonOut& first, const JsonOut& second) {
    return JsonOut{{"type", "Sequence"}, {"pretokenizers", JsonOut::array({first, second})}};
  };
  const JsonOut split = {
      {"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Isolated"}};
  JsonOut odd = split;
  odd["behavior"] = "Sideways";
  JsonOut no_pattern = split;
  no_pattern["pattern"] = {{"Glob", "a*"}};
  ExpectRefused({
      {"version", set("/version", "2.0"), Code::kUnsupported, "'2.0'"},
      {"model", set("/model/type", "Unigram"), Code::kUnsupported, "'Unigram'"},
      {"dropout", set("/model/dropout", 0.1), Code::kUnsupported, "model.dropout"},
      {"suffix", set("/model/end_of_word_suffix", "</w>"), Code::kUnsupported, "</w>"},
      {"normalizer", set("/normalizer", {{"type", "NFC"}}), Code::kUnsupported, "'NFC'"},
      {"normalizers",
       set("/normalizer",
           {{"type", "Sequence"}, {"normalizers", JsonOut::array({{{"type", "Lowercase"}}})}}),
       Code::kUnsupported, "'Lowercase'"},
      {"pre_tokenizer", set("/pre_tokenizer", {{"type", "Metaspace"}}), Code::kUnsupported,
       "'Metaspace'"},
      {"no pre_tokenizer", set("/pre_tokenizer", nullptr), Code::kCorrupt, "'pre_tokenizer'"},
      {"no byte level", set("/pre_tokenizer", split), Code::kUnsupported, "ByteLevel"},
      {"after byte level", set("/pre_tokenizer", sequence(byte_level, split)), Code::kUnsupported,
       "last step"},
      {"behavior", set("/pre_tokenizer", sequence(odd, byte_level)), Code::kUnsupported,
       "'Sideways'"},
      {"pattern", set("/pre_tokenizer", sequence(no_pattern, byte_level)), Code::kCorrupt,
       "'String'"},
      {"decoder", set("/decoder", {{"type", "WordPiece"}}), Code::kUnsupported, "'WordPiece'"},
      {"no decoder", set("/decoder", nullptr), Code::kCorrupt, "'decoder'"},
      {"post_processor", set("/post_processor", {{"type", "BertProcessing"}}), Code::kUnsupported,
       "'BertProcessing'"},
      {"template",
       set("/post_processor", {{"type", "TemplateProcessing"},
                               {"single", JsonOut::array({{{"Sequence", {{"id", "A"}}}},
                                                          {{"SpecialToken", {{"id", "<s>"}}}}})}}),
       Code::kUnsupported, "post_processor.single"},
  });
}

TEST(TokenizerFile, TheTemplateThatPutsBosFirstIsUnderstood) {
  JsonOut json = SmallTokenizer();
  AddToken(&json, "<s>");
  json["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       JsonOut::array({{{"type", "ByteLevel"}},
                       {{"type", "TemplateProcessing"},
                        {"single", JsonOut::array({{{"SpecialToken", {{"id", "<s>"}}}},
                                                   {{"Sequence", {{"id", "A"}}}}})}}})}};
  const auto file = ParseTokenizerFile(Dump(json));
  ASSERT_TRUE(file) << ToString(file.error());
  EXPECT_EQ(file->template_bos, "<s>");
}

TEST(TokenizerFile, WhatIsNoJsonOrNoTokenizerIsCorrupt) {
  std::string surrogate = Dump(SmallTokenizer());
  surrogate.replace(surrogate.find("\"!\""), 3, "\"\\ud800\"");
  std::string invalid = Dump(SmallTokenizer());
  invalid.replace(invalid.find("\"!\""), 3, "\"\xED\xA0\x80\"");
  for (const std::string& text : {std::string(), std::string("{}"), std::string("[]"), surrogate,
                                  invalid, Dump(SmallTokenizer()).substr(0, 500)}) {
    const auto file = ParseTokenizerFile(text);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, Code::kCorrupt) << file.error().message;
  }
}

TEST(TokenizerFile, LongNamesDoNotFillTheMessage) {
  JsonOut json = SmallTokenizer();
  json["model"]["merges"].push_back("a " + std::string(1 << 20, 'b'));
  const auto file = ParseTokenizerFile(Dump(json));
  ASSERT_FALSE(file);
  EXPECT_LT(file.error().message.size(), 2000u);
}

TEST(TokenizerConfig, TokensAreTextOrObjects) {
  const auto config = ParseTokenizerConfig(
      R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null,
          "add_bos_token": true, "chat_template": "hello"})");
  ASSERT_TRUE(config) << ToString(config.error());
  EXPECT_EQ(config->bos_token, "<s>");
  EXPECT_EQ(config->eos_token, "</s>");
  EXPECT_FALSE(config->pad_token);
  EXPECT_EQ(config->add_bos_token, true);
  EXPECT_EQ(config->chat_template.text, "hello");
}

TEST(TokenizerConfig, OfSeveralTemplatesTheDefaultOneCounts) {
  const auto config = ParseTokenizerConfig(
      R"({"chat_template": [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]})");
  ASSERT_TRUE(config) << ToString(config.error());
  EXPECT_EQ(config->chat_template.text, "d");
  EXPECT_EQ(config->chat_template.unused.size(), 1u);
}

TEST(TokenizerConfig, WrongTypesAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"bos_token": 7})", "bos_token"},
      {R"({"eos_token": {"text": "x"}})", "content"},
      {R"({"add_bos_token": "yes"})", "add_bos_token"},
      {R"([])", "object"},
      {R"({)", "JSON"}};
  for (const auto& [text, words] : rows) {
    const auto config = ParseTokenizerConfig(text);
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find(words), std::string::npos) << config.error().message;
  }
}

}  // namespace
}  // namespace latte::tokenizer_json_test
