#include "src/text/tokenizer_tiktoken.h"

#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/base/limits/cpu_time.h"
#include "src/text/tokenizer.h"

namespace latte::tokenizer_tiktoken_test {
namespace {

using Ids = std::vector<int32_t>;

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const std::string_view group = bytes.substr(i, 3);
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < group.size() ? static_cast<uint8_t>(group[k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      out += k <= group.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string Line(std::string_view token, int64_t rank) {
  return fmt::format("{} {}\n", Base64(token), rank);
}

// Byte b has rank b; the other tokens follow.
std::string Model(const std::vector<std::string>& tokens = {}) {
  std::string out;
  for (int byte = 0; byte < 256; ++byte) out += Line(std::string(1, static_cast<char>(byte)), byte);
  for (size_t i = 0; i < tokens.size(); ++i) out += Line(tokens[i], static_cast<int64_t>(256 + i));
  return out;
}

// The config for a model with `ranks` ranks: three named ids, of which one is not special.
JsonOut Config(int64_t ranks) {
  const auto token = [](const char* content, bool special) {
    return JsonOut{{"content", content}, {"lstrip", false},      {"normalized", false},
                   {"rstrip", false},    {"single_word", false}, {"special", special}};
  };
  return {{"added_tokens_decoder",
           {{std::to_string(ranks), token("[BOS]", true)},
            {std::to_string(ranks + 1), token("[EOS]", true)},
            {std::to_string(ranks + 13), token("<|tool_call_begin|>", false)}}},
          {"bos_token", "[BOS]"},
          {"eos_token", "[EOS]"},
          {"chat_template", "{{ messages }}"}};
}

void ExpectCorrupt(const std::string& model, const JsonOut& config, std::string_view words) {
  const double start = ThreadCpuSeconds();
  const auto file = ParseTiktokenFile(model, Dump(config));
  EXPECT_LT(ThreadCpuSeconds() - start, 20) << words;
  ASSERT_FALSE(file) << words;
  EXPECT_EQ(file.error().code, Code::kCorrupt) << words;
  EXPECT_NE(file.error().message.find(words), std::string::npos) << file.error().message;
}

class TiktokenFolder : public testing::Test {
 protected:
  TiktokenFolder() { std::filesystem::create_directory(dir_); }
  ~TiktokenFolder() override { std::filesystem::remove_all(dir_); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(dir_ + "/" + name, std::as_bytes(std::span(text))));
  }
  Tokenizer Load(const std::vector<std::string>& tokens) {
    Write("tiktoken.model", Model(tokens));
    Write("tokenizer_config.json", Dump(Config(256 + static_cast<int64_t>(tokens.size()))));
    Result<Tokenizer> out = Tokenizer::Load(dir_);
    EXPECT_TRUE(out) << ToString(out.error());
    return *std::move(out);
  }
  const std::string dir_ = testing::TempDir() + "/tiktoken_file_test_" + std::to_string(getpid());
};

TEST(TiktokenFile, MergesAreAllPairsThatMakeAToken) {
  const auto file =
      ParseTiktokenFile(Model({"ab", "bc", "abc", "\xFF\xFE", "ac"}), Dump(Config(261)));
  ASSERT_TRUE(file) << ToString(file.error());
  std::map<std::pair<int32_t, int32_t>, int32_t> merges;
  for (const BpeMerge& merge : file->merges) merges[{merge.left, merge.right}] = merge.result;
  const std::map<std::pair<int32_t, int32_t>, int32_t> expected = {
      {{'a', 'b'}, 256}, {{'b', 'c'}, 257},   {{'a', 257}, 258},
      {{256, 'c'}, 258}, {{0xFF, 0xFE}, 259}, {{'a', 'c'}, 260}};
  EXPECT_EQ(merges, expected);
  EXPECT_EQ(file->merges.size(), expected.size());
  EXPECT_EQ(file->token_bytes[259], "\xFF\xFE");
  EXPECT_EQ(file->byte_tokens[0], 0);
  EXPECT_EQ(file->byte_tokens[255], 255);
}

TEST(TiktokenFile, LinesMayStandInAnyOrderAndEndInCrLf) {
  std::string model = Line("ab", 0) + "\r\n\n";
  for (int byte = 255; byte >= 0; --byte) {
    model += fmt::format("{} {}\r\n", Base64(std::string(1, static_cast<char>(byte))), byte + 1);
  }
  const auto file = ParseTiktokenFile(model, Dump(Config(257)));
  ASSERT_TRUE(file) << ToString(file.error());
  EXPECT_EQ(file->byte_tokens['a'], 'a' + 1);
  ASSERT_EQ(file->merges.size(), 1u);
  EXPECT_EQ(file->merges[0].result, 0);
  model.resize(model.size() - 2);  // the last newline is optional
  EXPECT_TRUE(ParseTiktokenFile(model, Dump(Config(257))));
}

TEST(TiktokenFile, IdsBehindTheRanksAreNamedOrReserved) {
  const auto file = ParseTiktokenFile(Model(), Dump(Config(256)));
  ASSERT_TRUE(file) << ToString(file.error());
  ASSERT_EQ(file->token_bytes.size(), 512u);
  ASSERT_EQ(file->added.size(), 256u);
  EXPECT_EQ(file->token_bytes[256], "[BOS]");
  EXPECT_EQ(file->token_bytes[258], "<|reserved_token_258|>");
  EXPECT_EQ(file->token_bytes[269], "<|tool_call_begin|>");
  EXPECT_EQ(file->token_bytes[511], "<|reserved_token_511|>");
  EXPECT_TRUE(file->added[0].special && file->added[2].special && file->added[255].special);
  EXPECT_FALSE(file->added[13].special);
  EXPECT_EQ(file->added[13].id, 269);
}

TEST(TiktokenFile, BadLinesAreCorruptAndNamed) {
  const JsonOut config = Config(256);
  const std::string good = Model();  // 256 lines
  const auto line = [&](const std::string& text, std::string_view words) {
    ExpectCorrupt(good + text + "\n" + Line("zz", 257), config,
                  fmt::format("tiktoken.model: line 257: {}", words));
  };
  line("YWI=", "expected 'BASE64 RANK', found 'YWI='");
  line("YWI= ", "expected a rank from 0 to 258, found ''");
  line("YWI=  256", "expected a rank");
  line("YWI= 256 ", "expected a rank");
  line("YWI= -1", "expected a rank from 0 to 258, found '-1'");
  line("YWI= +1", "expected a rank");
  line("YWI= 1e2", "expected a rank");
  line("YWI= 300", "expected a rank from 0 to 258, found '300'");
  line("YWI= 99999999999999999999", "expected a rank");
  line("YWI= 2147483648", "expected a rank");
  line(" 256", "expected a token in base64, found ''");
  line("YWI 256", "expected a token in base64, found 'YWI'");
  line("YW=I 256", "expected a token in base64");
  line("==== 256", "expected a token in base64");
  line("YWJ= 256", "expected a token in base64");  // spare bits
  line("YW*= 256", "expected a token in base64");
  line("Y\xC3\xA9= 256", "expected a token in base64");
  line(std::string("YW\0= 256", 8), "expected a token in base64, found 'YW\\x00='");
  line(std::string("YWI= 25\0", 8), "expected a rank from 0 to 258, found '25\\x00'");
  line(std::string(5, '\0'), "expected 'BASE64 RANK'");
  line(Base64(std::string(1027, 'a')) + " 256", "expected a token of at most 1368 base64");
  line(std::string(1 << 20, 'A'), "expected 'BASE64 RANK', found 'AAAA");
  line("YWI= 97", "rank 97 stands already in line 98");
  line("YQ== 256", "the token stands already in line 98, with rank 97");
}

TEST(TiktokenFile, RanksMustHaveNoGapAndCoverAllBytes) {
  const JsonOut config = Config(256);
  ExpectCorrupt("", config, "tiktoken.model: no rank for the single byte 0x00");
  ExpectCorrupt("\n\n", config, "found 0 ranks");
  ExpectCorrupt(Model() + "\n" + Line("ab", 257), config,
                "tiktoken.model: line 258: expected the 257 ranks 0 to 256, found rank 257");
  std::string model = Model();
  model.replace(model.find(Line("A", 65)), Line("A", 65).size(), Line("AB", 65));
  ExpectCorrupt(model, config, "no rank for the single byte 0x41");
}

TEST(TiktokenFile, HostileSizesEndQuickly) {
  const JsonOut config = Config(256);
  ExpectCorrupt(std::string(64 << 20, '\n'), config, "found 0 ranks");
  ExpectCorrupt(std::string(64 << 20, 'A'), config, "line 1: expected 'BASE64 RANK'");
  // Each token is a prefix of all longer ones: the number of pairs grows with the square of the
  // number of tokens.
  std::vector<std::string> nested;
  for (size_t family = 0; family < 9; ++family)
    for (size_t n = 2; n <= 1024; ++n)
      nested.push_back(fmt::format("{}{:z>{}}", family, "", n - 1));
  ExpectCorrupt(Model(nested), config, "expected at most 4194304 pairs");
  std::string many = Model();
  for (int64_t i = 256; i <= 1 << 20; ++i) {
    const char token[] = {static_cast<char>(i), static_cast<char>(i >> 8),
                          static_cast<char>(i >> 16)};
    many += Line(std::string_view(token, 3), i);
  }
  ExpectCorrupt(many, config, "line 1048577: expected a rank from 0 to 1048575, found '1048576'");
}

TEST(TiktokenFile, BadNamesOfReservedIdsAreCorrupt) {
  const auto with = [](const std::string& id, const JsonOut& token) {
    JsonOut config = Config(256);
    config["added_tokens_decoder"][id] = token;
    return config;
  };
  const std::string model = Model();
  for (const char* id : {"255", "512", "-1", "x", "", "257 ", "4294967552"})
    ExpectCorrupt(model, with(id, {{"content", "y"}}),
                  fmt::format("expected an id from 256 to 511, behind the ranks of tiktoken.model, "
                              "found '{}'",
                              id));
  ExpectCorrupt(model, with("0256", {{"content", "y"}}), "id 256 stands twice");
  ExpectCorrupt(model, with("300", {{"content", "[BOS]"}}), "'[BOS]' stands twice");
  ExpectCorrupt(model, with("300", {{"content", "<|reserved_token_301|>"}}), "with id 301");
  ExpectCorrupt(model, with("300", {{"content", ""}}), "added_tokens_decoder.300");
  ExpectCorrupt(model, with("300", "y"), "added_tokens_decoder.300");
  ExpectCorrupt(model, with("300", {{"special", true}}), "content");
  ExpectCorrupt(model, JsonOut::object(), "added_tokens_decoder");
  ExpectCorrupt(model, {{"added_tokens_decoder", JsonOut::array()}}, "expected an object");
  EXPECT_EQ(ParseTiktokenFile(model, "{").error().code, Code::kCorrupt);
}

TEST_F(TiktokenFolder, LoadsWithoutTokenizerJson) {
  const Tokenizer tokenizer = Load({"ab", "abc"});
  EXPECT_EQ(tokenizer.vocab_size(), 258 + 256);
  EXPECT_EQ(tokenizer.bos_id(), 258);
  EXPECT_EQ(tokenizer.eos_id(), 259);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_EQ(tokenizer.chat_template(), "{{ messages }}");
  EXPECT_EQ(tokenizer.TokenId("abc"), 257);
  EXPECT_EQ(tokenizer.TokenId("[EOS]"), 259);
  EXPECT_EQ(tokenizer.TokenBytes(260), "<|reserved_token_260|>");
  EXPECT_EQ(*tokenizer.Encode("abc", {.add_bos = true}), (Ids{258, 257}));
  Write("chat_template.jinja", "from the file");
  EXPECT_EQ(Tokenizer::Load(dir_)->chat_template(), "from the file");
}

TEST_F(TiktokenFolder, SpecialTokensAreParsedOnlyWhenAskedFor) {
  const Tokenizer tokenizer = Load({});
  EXPECT_EQ(tokenizer.Encode("[BOS]")->size(), 5u);
  EXPECT_EQ(*tokenizer.Encode("x[BOS]", {.parse_special = true}), (Ids{'x', 256}));
  EXPECT_EQ(tokenizer.Encode("<|reserved_token_300|>")->size(), 22u);
  EXPECT_EQ(*tokenizer.Encode("<|reserved_token_300|>", {.parse_special = true}), (Ids{300}));
  EXPECT_EQ(*tokenizer.Encode("<|tool_call_begin|>"), (Ids{269}));
  EXPECT_EQ(tokenizer.Encode("<|tool_call_begin|>", {.parse_added = false})->size(), 19u);
  EXPECT_EQ(*tokenizer.Decode(Ids{256, 'x', 269, 300, 257}, /*skip_special=*/true),
            "x<|tool_call_begin|>");
  EXPECT_EQ(*tokenizer.Decode(Ids{256, 'x', 300}), "[BOS]x<|reserved_token_300|>");
}

// A word that is a token needs no merges. If several merges are possible, the lowest rank comes
// first; if two pairs make the same token, the left one does.
TEST_F(TiktokenFolder, WholeWordsThenLowestRankThenLeftmost) {
  const Tokenizer tokenizer = Load({"aa", "aaa", "qxz", "bc", "ab"});
  EXPECT_EQ(*tokenizer.Encode("qxz"), (Ids{258}));
  EXPECT_EQ(*tokenizer.Encode("qxzq"), (Ids{'q', 'x', 'z', 'q'}));
  EXPECT_EQ(*tokenizer.Encode("abc"), (Ids{'a', 259}));
  EXPECT_EQ(*tokenizer.Encode("aaaaa"), (Ids{256, 257}));
  EXPECT_EQ(*tokenizer.Encode("aaaaaaa"), (Ids{256, 256, 257}));
}

TEST_F(TiktokenFolder, ErrorsNameFolderAndFile) {
  const auto expect = [&](Code code, const std::string& words) {
    const auto loaded = Tokenizer::Load(dir_);
    ASSERT_FALSE(loaded) << words;
    EXPECT_EQ(loaded.error().code, code) << words;
    EXPECT_NE(loaded.error().message.find(dir_ + "/" + words), std::string::npos)
        << loaded.error().message;
  };
  expect(Code::kNotFound, "tokenizer.json");
  Write("tiktoken.model", Model());
  expect(Code::kNotFound, "tokenizer_config.json");
  JsonOut config = Config(256);
  config["bos_token"] = "<none>";
  config["add_bos_token"] = true;
  Write("tokenizer_config.json", Dump(config));
  expect(Code::kCorrupt, "tokenizer_config.json: 'bos_token' is '<none>'");
  Write("tiktoken.model", Model() + "!");
  expect(Code::kCorrupt, "tiktoken.model: line 257: ");
  std::filesystem::resize_file(dir_ + "/tiktoken.model", (64 << 20) + 1);
  expect(Code::kCorrupt, "tiktoken.model: expected at most 67108864 bytes, found 67108865");
  Write("tokenizer.json", "{");  // takes precedence
  expect(Code::kCorrupt, "tokenizer.json");
}

std::vector<size_t> ChunkSizes(const std::string& text) {
  std::vector<size_t> sizes;
  std::string joined;
  for (const std::string_view chunk : TiktokenChunks(text)) {
    sizes.push_back(chunk.size());
    joined += chunk;
  }
  EXPECT_EQ(joined, text);
  return sizes;
}

TEST(TiktokenChunks, RunsAreCutAfter25000Characters) {
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(ChunkSizes(std::string(25000, 'a')), (Sizes{25000}));
  EXPECT_EQ(ChunkSizes(std::string(25001, 'a')), (Sizes{25000, 1}));
  EXPECT_EQ(ChunkSizes(std::string(50001, ' ')), (Sizes{25000, 25000, 1}));
  EXPECT_EQ(ChunkSizes(std::string(25000, 'a') + std::string(25000, ' ')), (Sizes{50000}));
  EXPECT_EQ(ChunkSizes("xy " + std::string(25001, 'a') + " z"), (Sizes{25003, 3}));
  EXPECT_EQ(ChunkSizes(std::string(20000, ' ') + std::string(5001, '\x1C')), (Sizes{25000, 1}));
  EXPECT_EQ(ChunkSizes(std::string(20000, ' ') + std::string(5001, '\x1B')), (Sizes{25001}));
  std::string wide;
  for (int i = 0; i < 25001; ++i) wide += "中";
  EXPECT_EQ(ChunkSizes(wide), (Sizes{75000, 3}));
}

TEST(TiktokenChunks, TextsAreCutEvery400000Characters) {
  using Sizes = std::vector<size_t>;
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "a ";
  EXPECT_EQ(ChunkSizes(text), (Sizes{400000}));
  EXPECT_EQ(ChunkSizes(text + "a"), (Sizes{400000, 1}));
  EXPECT_EQ(ChunkSizes(text + text + "é"), (Sizes{400000, 400000, 2}));
  // A cut begins a new run.
  text.replace(399000, 1000, std::string(1000, 'b'));
  EXPECT_EQ(ChunkSizes(text + std::string(25000, 'b')), (Sizes{400000, 25000}));
  EXPECT_EQ(ChunkSizes(text + std::string(25001, 'b')), (Sizes{400000, 25000, 1}));
}

}  // namespace
}  // namespace latte::tokenizer_tiktoken_test
