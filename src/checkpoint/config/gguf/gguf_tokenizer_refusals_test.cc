// Metadata that are no tokenizer: each is refused with the key, what was expected and what was
// found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/config/gguf/gguf_tokenizer.h"
#include "src/checkpoint/gguf/gguf_header.h"
#include "tests/support/checkpoint/gguf_vocabulary.h"

namespace latte::gguf_tokenizer_refusals_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions

std::string ErrorOf(const GgufModel& model, Code code = Code::kCorrupt) {
  const std::string bytes = model.Bytes();
  const std::string path = "m.gguf";
  const auto header = ParseGgufHeader(std::as_bytes(std::span(bytes)), path);
  if (!header) return header.error().message;
  const Result<Tokenizer> tokenizer = ParseGgufTokenizer(header->metadata);
  if (tokenizer) return "no error";
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_TRUE(tokenizer.error().message.starts_with("m.gguf")) << tokenizer.error().message;
  EXPECT_TRUE(tokenizer.error().message.find("take ") != std::string::npos)
      << tokenizer.error().message;
  return tokenizer.error().message;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The message about the small vocabulary after `change`.
template <class Change>
std::string After(Change change) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  change(arrays);
  return ErrorOf(arrays.Model());
}

TEST(GgufTokenizerRefusals, KindsOfTokenizers) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  for (const char* name : {"bert", "t5", "rwkv", ""}) {
    arrays.model = name;
    const std::string message = ErrorOf(arrays.Model(), Code::kUnsupported);
    EXPECT_PRED2(Contains, message,
                 fmt::format("'tokenizer.ggml.model': expected gpt2 (byte-level BPE) or llama "
                             "(SentencePiece), found '{}'",
                             name));
    EXPECT_PRED2(Contains, message, "take the safetensors copy of the model");
  }
}

TEST(GgufTokenizerRefusals, WaysToSplit) {
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  arrays.pre = "default";
  GgufModel m = arrays.Model();
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported),
               "'tokenizer.ggml.pre': expected a known way to split text (deepseek-llm, ");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "found 'default'");
  m.entries.erase("tokenizer.ggml.pre");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "found no such key; with another one");
}

TEST(GgufTokenizerRefusals, MissingKeysAndOtherTypes) {
  for (const char* name : {"model", "tokens", "token_type", "merges"}) {
    const std::string key = fmt::format("tokenizer.ggml.{}", name);
    GgufModel m = SmallGgufVocabulary().Model();
    m.U32(key, 7);
    EXPECT_PRED2(Contains, ErrorOf(m), fmt::format("'{}': expected a", key)) << name;
    m.entries.erase(key);
    EXPECT_PRED2(Contains, ErrorOf(m), fmt::format("'{}' is missing; take", key));
  }
  for (const char* key : {"ggml.pre", "ggml.bos_token_id", "ggml.eos_token_id", "ggml.eot_token_id",
                          "ggml.eom_token_id", "ggml.padding_token_id", "ggml.add_bos_token",
                          "chat_template", "chat_template.rag"}) {
    GgufModel m = SmallGgufVocabulary().Model();
    m.F32(fmt::format("tokenizer.{}", key), 7);
    EXPECT_PRED2(Contains, ErrorOf(m), fmt::format("'tokenizer.{}': expected", key));
    EXPECT_PRED2(Contains, ErrorOf(m), "found a value of type f32");
  }
}

TEST(GgufTokenizerRefusals, ArraysOfOtherLengths) {
  EXPECT_PRED2(Contains, After([](auto& v) { v.types.pop_back(); }),
               "'tokenizer.ggml.token_type': expected 261 elements, as many as "
               "tokenizer.ggml.tokens has, found 260");
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens.pop_back(); }), "expected 260 elements");
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens.clear(), v.types.clear(); }),
               "'tokenizer.ggml.tokens': expected tokens, found none");
  EXPECT_PRED2(Contains, After([](auto& v) { v.types.assign((size_t{1} << 20) + 1, 1); }),
               "'tokenizer.ggml.token_type': expected at most 1048576 elements, found 1048577");
}

TEST(GgufTokenizerRefusals, Tokens) {
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens[256] = "a"; }),
               "expected each token once, found 'a' as token 97 and as token 256");
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens[257] = "a"; }), "each token once");
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens[256] = ""; }),
               "'tokenizer.ggml.tokens': expected texts in UTF-8, found '' as token 256");
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens[256] = "\xFF"; }), "as token 256");
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens[65] = "AA"; }), "no token for byte 0x41");
  EXPECT_PRED2(Contains, After([](auto& v) { v.types[65] = 5; }), "no token for byte 0x41");
  EXPECT_PRED2(Contains, After([](auto& v) { v.types[256] = 6; }),
               "expected tokens of type 6 to be one byte each, found 'ab' as token 256");
  EXPECT_PRED2(Contains, After([](auto& v) { v.tokens[257] = std::string(1025, 'x'); }),
               "expected a content of 1 to 1024 bytes, found 1025");
  for (const int32_t type : {-1, 0, 7})
    EXPECT_PRED2(Contains, After([type](auto& v) { v.types[2] = type; }),
                 fmt::format("'tokenizer.ggml.token_type': expected types from 1 to 6, found type "
                             "{} of token 2",
                             type));
  EXPECT_PRED2(Contains, After([](auto& v) { v.Add(std::string(size_t{65} << 20, 'x'), 1); }),
               "at most 67108864 bytes of tokens and merges together");
}

TEST(GgufTokenizerRefusals, Merges) {
  for (const char* merge :
       {"", " ", "a", "ab", "a  b", "a b c", "b a", "a \xFF", "a é", "a [PAD260]", "#version: 0.2"})
    EXPECT_PRED2(Contains, After([merge](auto& v) { v.merges.push_back(merge); }),
                 "m.gguf, its metadata as tokenizer.json: 'model.merges.1': merge of ")
        << merge;
}

TEST(GgufTokenizerRefusals, IdsOfTokens) {
  for (const char* role : {"bos", "eos", "eot", "eom", "padding"}) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role);
    GgufModel m = SmallGgufVocabulary().Model();
    m.U32(key, 261);
    EXPECT_PRED2(Contains, ErrorOf(m),
                 fmt::format("'{}': expected an id from 0 to 260, found 261", key));
    m.U32(key, -1);
    EXPECT_PRED2(Contains, ErrorOf(m), "found 4294967295");
    m.U32(key, 260);
    EXPECT_PRED2(Contains, ErrorOf(m), "expected the id of a token, found 260, which is unused");
  }
  GgufVocabularyArrays arrays = SmallGgufVocabulary();
  arrays.bos = -1;
  GgufModel m = arrays.Model();
  m.Bool("tokenizer.ggml.add_bos_token", true);
  EXPECT_PRED2(Contains, ErrorOf(m),
               "'tokenizer.ggml.add_bos_token': expected false without "
               "tokenizer.ggml.bos_token_id, found true");
}

TEST(GgufTokenizerRefusals, RanksOfKimi) {
  const auto kimi = [](int32_t added) {
    GgufVocabularyArrays v;
    for (int byte = 0; byte < 256; ++byte)
      v.Add(std::string(ByteAlphabetSymbol(static_cast<uint8_t>(byte))), 1);
    for (int32_t i = 0; i < added; ++i) v.Add(fmt::format("<|{}|>", i), 3);
    v.pre = "kimi-k2";
    return v;
  };
  EXPECT_EQ(ErrorOf(kimi(256).Model()), "no error");
  EXPECT_PRED2(Contains, ErrorOf(kimi(255).Model()),
               "expected normal tokens and 256 others behind them, as kimi-k2 has, found 255");
  GgufVocabularyArrays v = kimi(256);
  v.types[300] = 1;
  EXPECT_PRED2(Contains, ErrorOf(v.Model()), "expected no normal token behind the first 256");
  v = kimi(256);
  v.tokens[65] = "<｜>";
  EXPECT_PRED2(Contains, ErrorOf(v.Model()), "expected texts in the byte-level alphabet");
  v = kimi(256);
  v.tokens[65] = "AA";
  EXPECT_PRED2(Contains, ErrorOf(v.Model()),
               "m.gguf, its metadata as tiktoken.model: no rank for the single byte 0x41");
}

}  // namespace
}  // namespace latte::gguf_tokenizer_refusals_test
