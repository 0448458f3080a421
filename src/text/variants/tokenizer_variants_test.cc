// Tokenizer files of other tools: which of their variants mean the same to Latte, and which are
// refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/text/tokenizer.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::tokenizer_variants_test {
namespace {

using Ids = std::vector<int32_t>;

// "ab" is 256; <s> 257 and </s> 258 are special.
JsonOut File() {
  JsonOut file = SmallTokenizer({"a b"});
  AddToken(&file, "<s>");
  AddToken(&file, "</s>");
  return file;
}

JsonOut FromText(const char* json) { return JsonOut::parse(json); }

// A post-processor with the pieces `single` and with `special_tokens`, as `tokenizers` writes it.
JsonOut Template(const char* single, const char* special_tokens = "{}") {
  return {{"type", "TemplateProcessing"},
          {"single", FromText(single)},
          {"pair", FromText(R"([{"Sequence": {"id": "A", "type_id": 0}},
                                {"Sequence": {"id": "B", "type_id": 1}}])")},
          {"special_tokens", FromText(special_tokens)}};
}

JsonOut SequenceOf(const std::vector<JsonOut>& processors) {
  return {{"type", "Sequence"}, {"processors", processors}};
}

const JsonOut& ByteLevel() {
  static const JsonOut kProcessor = FromText(
      R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true})");
  return kProcessor;
}

constexpr const char* kTextOnly = R"([{"Sequence": {"id": "A", "type_id": 0}}])";
constexpr const char* kBosFirst =
    R"([{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}])";
constexpr const char* kEosLast =
    R"([{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}])";

Result<Tokenizer> With(const JsonOut& post_processor, std::string_view config = {}) {
  JsonOut file = File();
  file["post_processor"] = post_processor;
  return Tokenizer::FromJson(Dump(file), config);
}

TEST(PostProcessor, OneThatAddsNothingIsTaken) {
  const JsonOut nothing = Template(kTextOnly);
  const JsonOut kCases[] = {
      nullptr, ByteLevel(), nothing,
      Template(kTextOnly, R"({"<s>": {"id": "<s>", "ids": [257], "tokens": ["<s>"]}})"),
      SequenceOf({}), SequenceOf({ByteLevel(), nothing}),
      SequenceOf({SequenceOf({SequenceOf({ByteLevel()}), nothing}), nothing}),
      // transformers saves this for a tokenizer that adds neither token.
      Template(R"([{"SpecialToken": {"id": "<s>", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "</s>", "type_id": 0}}])",
               R"({"<s>": {"id": "<s>", "ids": [], "tokens": []},
                   "</s>": {"id": "</s>", "ids": [], "tokens": []}})")};
  for (const JsonOut& post_processor : kCases) {
    const auto tokenizer = With(post_processor);
    ASSERT_TRUE(tokenizer) << Dump(post_processor) << ToString(tokenizer.error());
    EXPECT_FALSE(tokenizer->adds_bos()) << Dump(post_processor);
    EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
    EXPECT_EQ(*tokenizer->Encode("ab"), Ids{256});
  }
}

TEST(PostProcessor, OneTokenBeforeTheTextIsTheFirst) {
  const JsonOut kCases[] = {
      Template(kBosFirst), SequenceOf({SequenceOf({ByteLevel(), Template(kBosFirst)})}),
      SequenceOf({Template(kTextOnly), Template(kBosFirst)}),
      Template(R"([{"SpecialToken": {"id": "first", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}])",
               R"({"first": {"id": "first", "ids": [257], "tokens": ["<s>"]}})")};
  for (const JsonOut& post_processor : kCases) {
    const auto tokenizer = With(post_processor);
    ASSERT_TRUE(tokenizer) << Dump(post_processor) << ToString(tokenizer.error());
    EXPECT_TRUE(tokenizer->adds_bos()) << Dump(post_processor);
    EXPECT_EQ(tokenizer->bos_id(), 257) << Dump(post_processor);
    EXPECT_FALSE(With(post_processor, R"({"add_bos_token": false})")->adds_bos());
  }
}

TEST(PostProcessor, WhatAddsOtherTokensIsRefusedByName) {
  const std::pair<JsonOut, const char*> kCases[] = {
      {Template(kEosLast), "post_processor.single"},
      {SequenceOf({ByteLevel(), SequenceOf({Template(kEosLast)})}), "processors.0.single"},
      {SequenceOf({Template(kBosFirst), Template(kBosFirst)}), "a second one"},
      {Template(kBosFirst,
                R"({"<s>": {"id": "<s>", "ids": [257, 258], "tokens": ["<s>", "</s>"]}})"),
       "at most one token"},
      {Template(R"([{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}])"), "single"},
      {Template(R"([{"Sequence": {"id": "B"}}])"), "single"},
      {Template("[]"), "single"},
      {Template("\"$A </s>\""), "single"},
      {SequenceOf({FromText(R"({"type": "RobertaProcessing"})")}), "'RobertaProcessing'"},
      {FromText(R"({"type": "BertProcessing", "sep": ["</s>", 258], "cls": ["<s>", 257]})"),
       "'BertProcessing'"}};
  for (const auto& [post_processor, words] : kCases) {
    const auto tokenizer = With(post_processor);
    ASSERT_FALSE(tokenizer) << Dump(post_processor);
    EXPECT_EQ(tokenizer.error().code, Code::kUnsupported) << Dump(post_processor);
    EXPECT_NE(tokenizer.error().message.find(words), std::string::npos)
        << tokenizer.error().message;
  }
}

// The deepest and the longest sequences that JSON limits allow.
TEST(PostProcessor, SequencesAreBounded) {
  JsonOut deep = ByteLevel();
  for (int level = 0; level < 40; ++level) deep = SequenceOf({deep});
  EXPECT_EQ(With(deep).error().code, Code::kCorrupt);
  std::vector<JsonOut> wide;
  for (int i = 0; i < 40; ++i) wide.push_back(ByteLevel());
  EXPECT_TRUE(With(SequenceOf(wide)));
  EXPECT_EQ(With(SequenceOf({SequenceOf(wide), SequenceOf(wide)})).error().code, Code::kCorrupt);
}

TEST(TokenizerModel, SettingsForUnknownTextChangeNothingWhereEveryByteHasAToken) {
  const Tokenizer plain = Tokenizer::FromJson(Dump(File()), "").value();
  const std::string text = "ab é\xF0\x9F\x98\x80\xFF";
  const std::pair<const char*, const char*> kCases[] = {
      {"unk_token", "\"<unk>\""}, {"unk_token", "\"<s>\""},  {"unk_token", "null"},
      {"fuse_unk", "true"},       {"byte_fallback", "true"}, {"byte_fallback", "false"},
      {"dropout", "null"},        {"dropout", "0"},          {"dropout", "0.0"},
      {"cache_capacity", "7"}};
  for (const auto& [key, value] : kCases) {
    JsonOut file = File();
    file["model"][key] = FromText(value);
    const auto tokenizer = Tokenizer::FromJson(Dump(file), "");
    ASSERT_TRUE(tokenizer) << key << ": " << ToString(tokenizer.error());
    EXPECT_EQ(*tokenizer->Encode(text), *plain.Encode(text)) << key << " " << value;
  }
}

TEST(TokenizerModel, StepsThatDoNothingAreTaken) {
  const std::pair<const char*, const char*> kCases[] = {
      {"normalizer", R"({"type": "Sequence", "normalizers": []})"},
      {"normalizer",
       R"({"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": []}]})"},
      {"decoder", R"({"type": "Sequence", "decoders": [{"type": "ByteLevel"}, {"type": "Fuse"}]})"},
      {"truncation",
       R"({"max_length": 8, "direction": "Right", "strategy": "LongestFirst", "stride": 0})"},
      {"padding", R"({"strategy": "BatchLongest", "pad_id": 0, "pad_token": "<pad>"})"}};
  for (const auto& [key, value] : kCases) {
    JsonOut file = File();
    file[key] = FromText(value);
    const auto tokenizer = Tokenizer::FromJson(Dump(file), "");
    ASSERT_TRUE(tokenizer) << value << ": " << ToString(tokenizer.error());
    EXPECT_EQ(*tokenizer->Encode("abab"), (Ids{256, 256}));
    EXPECT_EQ(*tokenizer->Decode(Ids{256, 'x'}), "abx");
  }
}

TEST(TokenizerRoles, TokensThatChangeNoIdMayBeAnything) {
  const char* kCases[] = {
      R"({"pad_token": "<pad>"})",
      R"({"pad_token": null})",
      R"({"pad_token": 7})",
      R"({"pad_token": {"text": "x"}})",
      R"({"pad_token": []})",
      R"({"unk_token": "<unk>"})",
      R"({"unk_token": {"content": 7}})",
      R"({"cls_token": ["<cls>"]})",
      R"({"additional_special_tokens": ["<x>", {"content": "<y>"}]})",
      R"({"additional_special_tokens": null, "extra_special_tokens": {"image_token": "<image>"}})",
      R"({"extra_special_tokens": []})",
      R"({"model_max_length": 1000000000000000019884624838656})",
      R"({"tokenizer_class": "TokenizersBackend", "backend": "tokenizers", "is_local": true})"};
  for (const char* config : kCases) {
    const auto tokenizer = Tokenizer::FromJson(Dump(File()), config);
    ASSERT_TRUE(tokenizer) << config << ToString(tokenizer.error());
    EXPECT_EQ(tokenizer->pad_id(), std::nullopt) << config;
    EXPECT_EQ(*tokenizer->Encode("ab<x>"), (Ids{256, '<', 'x', '>'})) << config;
  }
  const std::string object = R"({"pad_token": {"content": "</s>", "__type": "AddedToken"}})";
  EXPECT_EQ(Tokenizer::FromJson(Dump(File()), object)->pad_id(), 258);
}

TEST(TokenizerRoles, ATokenThatTheVocabularyLacksIsMissedWhereItIsNeeded) {
  const auto load = [](const char* config) { return Tokenizer::FromJson(Dump(File()), config); };
  const auto eos = load(R"({"eos_token": "<none>"})");
  ASSERT_TRUE(eos) << ToString(eos.error());
  EXPECT_EQ(eos->eos_id(), std::nullopt);
  const auto bos = load(R"({"bos_token": "<none>", "add_bos_token": false})");
  ASSERT_TRUE(bos) << ToString(bos.error());
  EXPECT_TRUE(bos->CheckChatTemplate());
  EXPECT_EQ(bos->Encode("a", {.add_bos = true}).error().code, Code::kInvalidArgument);
  EXPECT_NE(load(R"({"bos_token": "<none>", "add_bos_token": true})")
                .error()
                .message.find("every prompt"),
            std::string::npos);
  for (const char* key : {"bos_token", "eos_token"}) {
    const auto used = load(
        fmt::format(R"({{"{}": "<none>", "chat_template": "{{{{ {} }}}}"}})", key, key).c_str());
    ASSERT_TRUE(used) << ToString(used.error());
    const Status chat = used->CheckChatTemplate();
    ASSERT_FALSE(chat) << key;
    EXPECT_NE(chat.error().message.find(std::string("'") + key + "' is '<none>'"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace latte::tokenizer_variants_test
