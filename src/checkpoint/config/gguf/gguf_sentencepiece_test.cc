// Tokenizers of SentencePiece's kind in GGUF files.
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/checkpoint/config/gguf/gguf_tokenizer.h"
#include "src/checkpoint/gguf/gguf_header.h"
#include "tests/support/checkpoint/gguf_vocabulary.h"
#include "tests/support/golden_strings.h"

namespace latte::gguf_sentencepiece_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions
using Ids = std::vector<int32_t>;

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

std::string ErrorOf(const GgufModel& model, Code code = Code::kCorrupt) {
  const Result<Tokenizer> tokenizer = Parse(model);
  if (tokenizer) return "no error";
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_TRUE(tokenizer.error().message.starts_with("m.gguf")) << tokenizer.error().message;
  return tokenizer.error().message;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What llama.cpp's converter makes of the SentencePiece model of a tokenizer.json: its pieces have
// the scores 0, -1, -2 and so on.
GgufVocabularyArrays Converted(const Json& file, const Tokenizer& from) {
  GgufVocabularyArrays out;
  out.model = "llama";
  out.pre = "default";
  out.tokens.resize(static_cast<size_t>(from.vocab_size()));
  out.types.assign(out.tokens.size(), 1);
  out.scores.resize(out.tokens.size());
  const Status read = file.Get("model")->Get("vocab")->ForEachMember(
      [&](const std::string& token, const Json& id) -> Status {
        out.tokens[static_cast<size_t>(id.AsInt().value())] = token;
        return {};
      });
  EXPECT_TRUE(read);
  for (size_t id = 3; id < 259; ++id) out.types[id] = 6;
  for (size_t id = 259; id < out.tokens.size(); ++id) out.scores[id] = 259 - static_cast<float>(id);
  for (const int32_t id : from.AddedIds()) {
    const auto at = static_cast<size_t>(id);
    out.tokens[at] = from.TokenBytes(id);
    out.types[at] = id == 0 ? 2 : from.IsSpecial(id) ? 3 : 4;
    out.scores[at] = -1000;
  }
  out.bos = 1;
  out.eos = 2;
  return out;
}

TEST(GgufSentencePiece, IdsAreThoseOfTokenizerJson) {
  const std::string dir = std::string(LATTE_SOURCE_DIR) + "/tests/data/tokenizer/llama_style";
  const Tokenizer expected = Tokenizer::Load(dir).value();
  const std::string path = dir + "/tokenizer.json";
  const Json file = Json::Parse(ReadFile(path, 1 << 20).value(), path).value();
  const Tokenizer found = Made(Converted(file, expected).Model());
  ASSERT_EQ(found.vocab_size(), expected.vocab_size());
  EXPECT_EQ(found.AddedIds(), expected.AddedIds());
  EXPECT_EQ(found.bos_id(), expected.bos_id());
  EXPECT_EQ(found.eos_id(), expected.eos_id());
  EXPECT_TRUE(found.adds_bos());
  for (int32_t id = 0; id < expected.vocab_size(); ++id)
    ASSERT_EQ(found.TokenBytes(id), expected.TokenBytes(id)) << id;
  for (const char* words :
       {"the of and a in", "Hello world", "  two  spaces ", "12 + 34 = 46", "中文 naïve 😀",
        "a\nb\t c", "<|im_start|>user\nhi<|im_end|>", "<tool>x"})
    for (const bool special : {false, true}) {
      const EncodeOptions options = {.parse_special = special};
      const Ids ids = expected.Encode(words, options).value();
      EXPECT_EQ(found.Encode(words, options).value(), ids) << words;
      EXPECT_EQ(found.Decode(ids).value(), expected.Decode(ids).value()) << words;
    }
}

TEST(GgufSentencePiece, TheHighestScoreIsMergedFirst) {
  GgufVocabularyArrays arrays = SmallSentencePiece();
  EXPECT_EQ(Made(arrays.Model()).Encode("ab").value(), (Ids{262, 261}));
  std::swap(arrays.scores[262], arrays.scores[263]);
  EXPECT_EQ(Made(arrays.Model()).Encode("ab").value(), (Ids{259, 263}));
}

TEST(GgufSentencePiece, TypesOfTokens) {
  const Tokenizer tokenizer = Made(SmallSentencePiece().Model());
  EXPECT_EQ(tokenizer.AddedIds(), (Ids{0, 1, 2, 264}));
  EXPECT_FALSE(tokenizer.IsSpecial(264));
  EXPECT_EQ(tokenizer.Encode("a<user>a\n").value(), (Ids{262, 264, 262, 3 + '\n'}));
  EXPECT_EQ(tokenizer.Encode("<s>", {.parse_special = true}).value(), Ids{1});
  EXPECT_EQ(tokenizer.TokenBytes(3 + 'A'), "A");
}

TEST(GgufSentencePiece, TheFileSaysWhetherASpaceStandsBeforeTexts) {
  GgufModel m = SmallSentencePiece().Model();
  m.Bool("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer bare = Made(m);
  EXPECT_EQ(bare.Encode("ab a").value(), (Ids{263, 262}));
  EXPECT_EQ(bare.Decode(Ids{262}).value(), " a");
  m.Bool("tokenizer.ggml.add_space_prefix", true);
  EXPECT_EQ(Made(m).Encode("a").value(), Ids{262});
  m.Bool("tokenizer.ggml.add_bos_token", false);
  EXPECT_FALSE(Made(m).adds_bos());
}

TEST(GgufSentencePiece, RefusesWhatIsMissingOrWrong) {
  GgufModel m = SmallSentencePiece().Model();
  m.Bool("tokenizer.ggml.remove_extra_whitespaces", true);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "expected false, found true");
  m = SmallSentencePiece().Model();
  m.U32("tokenizer.ggml.scores", 7);
  EXPECT_PRED2(Contains, ErrorOf(m), "'tokenizer.ggml.scores': expected an array of f32");
  m.entries.erase("tokenizer.ggml.scores");
  EXPECT_PRED2(Contains, ErrorOf(m), "'tokenizer.ggml.scores' is missing");
  GgufVocabularyArrays arrays = SmallSentencePiece();
  arrays.scores.pop_back();
  EXPECT_PRED2(Contains, ErrorOf(arrays.Model()),
               "expected 265 elements, one for each token, found 264");
  arrays = SmallSentencePiece();
  arrays.scores[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_PRED2(Contains, ErrorOf(arrays.Model()), "expected finite numbers, found nan as number 7");
  arrays = SmallSentencePiece();
  arrays.tokens[3 + 'A'] = "A";
  EXPECT_PRED2(Contains, ErrorOf(arrays.Model()), "expected tokens of type 6 to be one byte each");
  arrays.types[3 + 'A'] = 1;
  EXPECT_PRED2(Contains, ErrorOf(arrays.Model()), "no token for byte 0x41 ('<0x41>')");
  arrays = SmallSentencePiece();
  arrays.tokens[263] = std::string(40'000, 'a');
  EXPECT_PRED2(Contains, ErrorOf(arrays.Model()), "tokens of a few bytes each");
}

TEST(GgufSentencePiece, TooManyPairsAreRefused) {
  GgufVocabularyArrays arrays = SmallSentencePiece();
  for (size_t length = 2; length <= 1460; ++length) arrays.Add(std::string(length, 'b'), 1);
  arrays.scores.resize(arrays.tokens.size());
  EXPECT_PRED2(Contains, ErrorOf(arrays.Model()),
               "expected at most 1048576 pairs of tokens that make a third, found more");
}

}  // namespace
}  // namespace latte::gguf_sentencepiece_test
