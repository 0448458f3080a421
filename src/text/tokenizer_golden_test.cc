// Compares ids of generated texts with Hugging Face's `tokenizers` for four tokenizers:
// DeepSeek-V3's (if available), a small one with DeepSeek-V2's pre-tokenizer, a small one of
// SentencePiece's kind, and the one of Latte's own model; and with `tiktoken` for a small one in
// Kimi's form. tools/tokenizer/make_goldens.py writes the expected ids.
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/text/tokenizer.h"
#include "tests/support/golden_strings.h"
#include "tests/support/parameter_name.h"

namespace latte::tokenizer_golden_test {
namespace {

const std::string kData = std::string(LATTE_SOURCE_DIR) + "/tests/data/tokenizer/";

std::string FromHex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

std::vector<std::string> Fragments() {
  std::istringstream lines(ReadFile(kData + "fragments.hex", 1 << 20).value());
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) out.push_back(FromHex(line));
  return out;
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t Fnv64(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

std::vector<int32_t> Ids(const Json& list) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < list.size(); ++i)
    out.push_back(static_cast<int32_t>(list.At(i).AsInt().value()));
  return out;
}

std::string Repaired(std::string_view bytes) {
  std::string out;
  AppendValidUtf8(bytes, &out);
  return out;
}

struct Case {
  const char* name;
  const char* folder;  // in the repository; null: taken from LATTE_TEST_TOKENIZER_DIR
  const char* file = "/tokenizer.json";

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class TokenizerGolden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("LATTE_TEST_TOKENIZER_DIR");
    if (GetParam().folder == nullptr && folder == nullptr)
      GTEST_SKIP()
          << "LATTE_TEST_TOKENIZER_DIR does not name a folder with DeepSeek-V3's tokenizer";
    const std::string dir = GetParam().folder == nullptr
                                ? folder
                                : std::string(LATTE_SOURCE_DIR) + "/" + GetParam().folder;
    const std::string file = dir + GetParam().file;
    if (!IsRegularFile(file)) GTEST_SKIP() << "there is no " << file;
    const std::string name = kData + GetParam().name;
    golden_ = Json::Parse(ReadFile(name + ".json", 1 << 20).value(), name).value();
    const uint64_t found = Fnv64(ReadFile(file, 64 << 20).value());
    ASSERT_EQ(Hex(found), golden_->GetString("tokenizer_fnv64").value())
        << file << " is not the one that the goldens were made with; after a change "
        << "run tools/tokenizer/make_goldens.py";
    const std::string hashes = ReadFile(name + ".hash", 1 << 20).value();
    hashes_.resize(hashes.size() / sizeof(uint32_t));
    std::memcpy(hashes_.data(), hashes.data(), hashes.size());
    Result<Tokenizer> loaded = Tokenizer::Load(dir);
    ASSERT_TRUE(loaded) << ToString(loaded.error());
    tokenizer_ = *std::move(loaded);
  }

  std::vector<int32_t> Encode(std::string_view text, bool parse_special) const {
    return tokenizer_->Encode(text, {.parse_special = parse_special}).value();
  }

  static bool IsSentencePiece() { return std::string_view(GetParam().name) == "llama_style"; }

  // What comes back: SentencePiece writes U+2581 for spaces, so that character becomes one.
  static std::string Decodable(std::string text) {
    for (size_t at = 0; IsSentencePiece() && (at = text.find("▁", at)) != std::string::npos;)
      text.replace(at, 3, " ");
    return text;
  }

  std::optional<Json> golden_;
  std::vector<uint32_t> hashes_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_P(TokenizerGolden, FullIdsOfTheFirstTexts) {
  EXPECT_EQ(tokenizer_->vocab_size(), golden_->GetInt("vocab_size").value());
  const Json full = golden_->Get("full").value();
  ASSERT_EQ(full.size(), 300u);
  const std::vector<std::string> fragments = Fragments();
  for (size_t i = 0; i < full.size(); ++i) {
    const std::string text = FromHex(full.At(i).GetString("text").value());
    ASSERT_EQ(GoldenText(i, fragments), text) << "the two generators differ at text " << i;
    const Json plain = full.At(i).Get("plain").value();
    EXPECT_EQ(Encode(text, false), Ids(plain)) << text;
    EXPECT_EQ(Encode(text, true), Ids(full.At(i).Find("special").value_or(plain))) << text;
  }
}

TEST_P(TokenizerGolden, EveryTextHasTheSameIdsAndComesBack) {
  const std::vector<std::string> fragments = Fragments();
  ASSERT_EQ(hashes_.size(), 2 * (kGoldenTexts + kGoldenBlocks));
  int failures = 0;
  for (uint64_t i = 0; i < kGoldenTexts + kGoldenBlocks && failures < 5; ++i) {
    const std::string text = GoldenText(i, fragments);
    const std::vector<int32_t> plain = Encode(text, false);
    // The blocks are nearly all of the bytes and spell no token.
    const std::vector<int32_t> special = i < kGoldenTexts ? Encode(text, true) : plain;
    const bool same =
        ShortHash(plain) == hashes_[2 * i] && ShortHash(special) == hashes_[2 * i + 1];
    EXPECT_TRUE(same) << "text " << i << ": " << text;
    failures += same ? 0 : 1;
    // A token that strips white space does not give that white space back, and SentencePiece puts a
    // space before the text after a token.
    const bool marked = text.find("</tool>") + text.find("<tool>") != 2 * std::string::npos;
    if (!marked || (std::string_view(GetParam().name) != "v2_style" && !IsSentencePiece())) {
      ASSERT_EQ(tokenizer_->Decode(plain).value(), Decodable(Repaired(text))) << "text " << i;
    }
  }
}

TEST_P(TokenizerGolden, MegabytesOfOneCharacter) {
  const Json runs = golden_->Get("runs").value();
  ASSERT_GE(runs.size(), 12u);
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string unit = runs.At(i).GetString("unit").value();
    std::string text;
    for (int64_t n = runs.At(i).GetInt("count").value(); n > 0; --n) text += unit;
    const std::vector<int32_t> ids = Encode(text, true);
    EXPECT_EQ(static_cast<int64_t>(ids.size()), runs.At(i).GetInt("ids").value()) << unit;
    EXPECT_EQ(Hex(HashIds(ids)), runs.At(i).GetString("hash").value()) << unit;
    EXPECT_EQ(tokenizer_->Decode(ids).value(), text) << unit;
  }
}

TEST_P(TokenizerGolden, EveryCodePointComesBackOneAtATimeThroughAStream) {
  StreamDecoder stream(*tokenizer_);
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text, streamed;
    AppendUtf8(c, &text);
    for (const int32_t id : Encode(text, false)) {
      const std::string piece = stream.Push(id);
      ASSERT_EQ(ValidUtf8Prefix(piece), piece.size());
      streamed += piece;
    }
    ASSERT_EQ(streamed, IsSentencePiece() ? " " + Decodable(text) : text)
        << static_cast<uint32_t>(c);
  }
  EXPECT_EQ(stream.Flush(), "");
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden,
                         testing::Values(Case{"v2_style", "tests/data/tokenizer/v2_style"},
                                         Case{"kimi_style", "tests/data/tokenizer/kimi_style",
                                              "/tiktoken.model"},
                                         Case{"llama_style", "tests/data/tokenizer/llama_style"},
                                         Case{"tiny", "models/tiny"}, Case{"deepseek_v3", nullptr}),
                         testing_support::ParameterName());

TEST(DeepSeekV3Tokenizer, KnowsItsIdsAndItsTemplate) {
  const char* folder = std::getenv("LATTE_TEST_TOKENIZER_DIR");
  if (folder == nullptr) GTEST_SKIP() << "LATTE_TEST_TOKENIZER_DIR is not set";
  const Result<Tokenizer> loaded = Tokenizer::Load(folder);
  ASSERT_TRUE(loaded) << ToString(loaded.error());
  EXPECT_EQ(loaded->bos_id(), 0);
  EXPECT_EQ(loaded->eos_id(), 1);
  EXPECT_EQ(loaded->pad_id(), 1);
  EXPECT_TRUE(loaded->adds_bos());
  EXPECT_EQ(loaded->TokenId("<｜User｜>"), 128803);
  EXPECT_EQ(loaded->TokenId("<｜Assistant｜>"), 128804);
  EXPECT_EQ(loaded->TokenId(" the"), loaded->Encode(" the")->at(0));
  EXPECT_FALSE(loaded->IsSpecial(128803));  // the file says so; see EncodeOptions::parse_added
  EXPECT_TRUE(loaded->chat_template().starts_with("{% if not add_generation_prompt"));
  const std::string turn = "<｜User｜>hi";
  EXPECT_EQ(loaded->Encode(turn)->front(), 128803);
  EXPECT_NE(loaded->Encode(turn, {.parse_added = false})->front(), 128803);
  EXPECT_EQ(*loaded->Decode(*loaded->Encode(turn, {.parse_added = false})), turn);
}

}  // namespace
}  // namespace latte::tokenizer_golden_test
