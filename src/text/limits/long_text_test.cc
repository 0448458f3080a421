// Long texts of one kind, with tokenizers that are made to be slow on them: the time is about
// linear in the text. Each takes below 0.5 s of processor time; a quadratic search takes minutes.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/base/limits/cpu_time.h"
#include "src/text/tokenizer.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::long_text_test {
namespace {

using Ids = std::vector<int32_t>;

constexpr size_t kBytes = 200'000;
constexpr double kSeconds = testing_support::kUnderTsan ? 60 : 10;  // leaves room for sanitizers
constexpr EncodeOptions kParse{.parse_special = true};

Tokenizer Load(const JsonOut& file) { return Tokenizer::FromJson(Dump(file)).value(); }

std::string Repeated(std::string_view part, size_t bytes = kBytes) {
  std::string out;
  while (out.size() < bytes) out += part;
  return out;
}

Result<Ids> TimedResult(const Tokenizer& tokenizer, const std::string& text) {
  const double begin = ThreadCpuSeconds();
  Result<Ids> ids = tokenizer.Encode(text, kParse);
  EXPECT_LT(ThreadCpuSeconds() - begin, kSeconds) << text.substr(0, 40);
  return ids;
}

Ids Timed(const Tokenizer& tokenizer, const std::string& text) {
  const Result<Ids> ids = TimedResult(tokenizer, text);
  EXPECT_TRUE(ids) << ToString(ids.error());
  return ids ? *ids : Ids();
}

// Each row as tokenizers 0.19 to 0.23 encode it.
TEST(LongText, TokensOfWhiteSpaceAsInTokenizers) {
  const JsonOut left = {{"lstrip", true}};
  const JsonOut right = {{"rstrip", true}};
  const JsonOut both = {{"lstrip", true}, {"rstrip", true}};
  const JsonOut word = {{"rstrip", true}, {"single_word", true}};
  const auto ids_of = [](const std::vector<std::pair<const char*, JsonOut>>& tokens,
                         const char* text) {
    JsonOut file = SmallTokenizer();
    for (const auto& [content, settings] : tokens) AddToken(&file, content, settings);
    return Load(file).Encode(text, kParse).value();
  };
  EXPECT_EQ(ids_of({{" ", right}}, "     "), (Ids{256, 256, 256, 256, 256}));
  EXPECT_EQ(ids_of({{" ", right}}, "a   b  c "),
            (Ids{'a', 256, 256, 256, 'b', 256, 256, 'c', 256}));
  EXPECT_EQ(ids_of({{" ", left}}, "a   b"), (Ids{'a', 256, 256, 256, 'b'}));
  EXPECT_EQ(ids_of({{" ", both}}, "     "), (Ids{256}));
  EXPECT_EQ(ids_of({{" ", both}}, "a   b  c "), (Ids{'a', 256, 'b', 256, 'c', 256}));
  EXPECT_EQ(ids_of({{" ", both}, {"<x>", left}}, "   <x>  <x>"), (Ids{256, 257, 256, 257}));
  EXPECT_EQ(ids_of({{"<x>", right}, {"  ", both}}, "<x>    <x>  "), (Ids{256, 256}));
  EXPECT_EQ(ids_of({{"<x>", right}, {" ", {}}}, "<x>  \t y"), (Ids{256, 257, 257, '\t', 257, 'y'}));
  EXPECT_EQ(ids_of({{"<x>", both}, {" y", {}}}, "  <x>  y"), (Ids{256, 257}));
  EXPECT_EQ(ids_of({{" ", word}}, "a   b  c "), (Ids{'a', ' ', 256, 'b', ' ', ' ', 'c', ' '}));
  EXPECT_EQ(ids_of({{"\n", right}, {" ", right}}, " \n \n  x \n"),
            (Ids{257, 256, 257, 256, 257, 257, 'x', 257, 256}));
}

TEST(LongText, AddedTokensOfWhiteSpace) {
  for (const JsonOut& settings :
       {JsonOut{{"rstrip", true}}, JsonOut{{"lstrip", true}},
        JsonOut{{"lstrip", true}, {"rstrip", true}},
        JsonOut{{"rstrip", true}, {"normalized", true}, {"single_word", true}}}) {
    for (const std::string_view space : {" ", "\n", "\u3000"}) {
      JsonOut file = SmallTokenizer();
      AddToken(&file, std::string(space), settings);
      AddToken(&file, "<x>", {{"lstrip", true}, {"rstrip", true}});
      const Tokenizer tokenizer = Load(file);
      EXPECT_FALSE(Timed(tokenizer, Repeated(space)).empty());
      Timed(tokenizer, Repeated(std::string(space) + "y"));
      Timed(tokenizer, Repeated(space) + "<x>");
      Timed(tokenizer, "<x>" + Repeated(space) + "<x>" + Repeated(space));
    }
  }
}

TEST(LongText, AddedTokensThatAlmostMatch) {
  JsonOut file = SmallTokenizer();
  for (int i = 0; i < 200; ++i) AddToken(&file, std::string(1020, 'a') + std::to_string(i));
  AddToken(&file, "aa", {{"normalized", true}});
  AddToken(&file, "bb", {{"single_word", true}});
  const Tokenizer tokenizer = Load(file);
  EXPECT_EQ(Timed(tokenizer, Repeated("a")).size(), kBytes / 2);
  Timed(tokenizer, Repeated("b"));
  Timed(tokenizer, Repeated("ab"));
}

// A chat of many short messages: the template's text is where tokens are searched, round by round.
TEST(LongText, ManyMessages) {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<s>");
  AddToken(&file, "<tool>", {{"normalized", true}});
  const Tokenizer tokenizer = Load(file);
  std::vector<TextPiece> pieces;
  constexpr size_t kMessages = 100'000;
  for (size_t i = 0; i < kMessages; ++i) {
    pieces.push_back({"<s><tool>", true});
    pieces.push_back({"<tool>", false});
  }
  const double begin = ThreadCpuSeconds();
  const Result<Ids> ids = tokenizer.EncodePieces(pieces);
  EXPECT_LT(ThreadCpuSeconds() - begin, kSeconds);
  EXPECT_EQ(ids.value().size(), kMessages * (2 + 6));
}

TEST(LongText, PiecesWithoutEnd) {
  std::vector<std::string> merges;
  for (std::string part = "a"; part.size() < 4096; part += part) {
    std::string merge = part;
    merges.push_back((merge += " ") += part);
  }
  const Tokenizer tokenizer = Load(SmallTokenizer(merges));
  EXPECT_FALSE(Timed(tokenizer, Repeated("a")).empty());
  Timed(tokenizer, Repeated("ab"));
  Timed(tokenizer, Repeated("\xFF"));
  Timed(tokenizer, Repeated("\xF0\x9F"));
  Timed(tokenizer, Repeated("\U0001F600"));
}

// Every kind of step, as often as a file may have it. Patterns have one budget of time for all
// steps.
TEST(LongText, ManySteps) {
  const auto split = [](const char* kind, const char* pattern, const char* behavior) {
    return JsonOut{{"type", "Split"},
                   {"pattern", {{kind, pattern}}},
                   {"behavior", behavior},
                   {"invert", false}};
  };
  for (const char* behavior :
       {"Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous", "Removed"}) {
    for (const auto& [kind, pattern] :
         {std::pair("String", "a"), std::pair("Regex", "a|b+"), std::pair("Regex", "(?=a)")}) {
      JsonOut steps = JsonOut::array();
      for (int i = 0; i < 6; ++i) steps.push_back(split(kind, pattern, behavior));
      steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}});
      JsonOut file = SmallTokenizer({"a b"});
      file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
      const Tokenizer tokenizer = Load(file);
      static_cast<void>(TimedResult(tokenizer, Repeated("ab ")));
    }
  }
}

TEST(LongText, SlowPatternsShareOneBudget) {
  JsonOut steps = JsonOut::array();
  for (int i = 0; i < 30; ++i)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", i % 2 == 0 ? "(?=a*b)a" : "(?=a*c)a"}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  JsonOut file = SmallTokenizer();
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  const Tokenizer tokenizer = Load(file);
  const double begin = ThreadCpuSeconds();
  const Result<Ids> ids = tokenizer.Encode(Repeated("a"), kParse);
  EXPECT_LT(ThreadCpuSeconds() - begin, 20);  // 5 s, and 1 s for each 128 KiB
  EXPECT_FALSE(ids);
}

TEST(LongText, StreamsOfPartsOfCharacters) {
  const Tokenizer tokenizer = Load(SmallTokenizer());
  const double begin = ThreadCpuSeconds();
  for (const int32_t byte : {0xF0, 0x80, 0xFF, 0x61}) {
    StreamDecoder decoder(tokenizer);
    size_t size = 0;
    for (size_t i = 0; i < kBytes; ++i) size += decoder.Push(byte).size();
    EXPECT_GE(size + decoder.Flush().size(), kBytes);
  }
  EXPECT_FALSE(tokenizer.Decode(Ids(kBytes, 0xF0)).value().empty());
  EXPECT_LT(ThreadCpuSeconds() - begin, kSeconds);
}

}  // namespace
}  // namespace latte::long_text_test
