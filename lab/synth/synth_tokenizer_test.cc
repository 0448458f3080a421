#include "lab/synth/synth_tokenizer.h"

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "src/text/tokenizer.h"

namespace latte::synth_tokenizer_test {
namespace {

Tokenizer Load(int64_t vocab, int64_t bos, int64_t eos) {
  const auto made = MakeSynthTokenizer(vocab, bos, eos);
  EXPECT_TRUE(made);
  auto tokenizer = Tokenizer::FromJson(made->tokenizer, made->config);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

TEST(SynthTokenizer, EveryIdHasATokenAndItsOwnText) {
  for (const auto& [vocab, bos, eos] :
       {std::tuple(102'400, 100'000, 100'001), std::tuple(154'880, -1, 154'820),
        std::tuple(512, 0, 1), std::tuple(260, 258, 259), std::tuple(300, -1, -1)}) {
    SCOPED_TRACE(vocab);
    const Tokenizer tokenizer = Load(vocab, bos, eos);
    ASSERT_EQ(tokenizer.vocab_size(), vocab);
    for (int32_t id = 0; id < vocab; ++id) {
      const std::string_view bytes = tokenizer.TokenBytes(id);
      ASSERT_FALSE(bytes.empty()) << id;
      if (static_cast<uint8_t>(bytes[0]) >= 0x80) continue;  // a part of a character
      const auto ids = tokenizer.Encode(bytes, {.parse_special = true});
      ASSERT_TRUE(ids);
      ASSERT_EQ(*ids, std::vector<int32_t>{id}) << bytes;
    }
  }
}

TEST(SynthTokenizer, TextComesBack) {
  const Tokenizer tokenizer = Load(4096, 0, 1);
  const std::string text = "Héllo, world!  12 bananas\n\tand 🙂 <|user|>";
  EXPECT_EQ(tokenizer.Decode(*tokenizer.Encode(text)), text);
}

TEST(SynthTokenizer, BosAndEosHaveTheGivenIds) {
  const Tokenizer tokenizer = Load(102'400, 100'000, 100'001);
  EXPECT_EQ(tokenizer.bos_id(), 100'000);
  EXPECT_EQ(tokenizer.eos_id(), 100'001);
}

TEST(SynthTokenizer, AVocabularyThatIsTooSmallOrTooLargeHasNone) {
  EXPECT_FALSE(MakeSynthTokenizer(259, 0, 1));
  EXPECT_TRUE(MakeSynthTokenizer(260, 0, 1));
  EXPECT_FALSE(MakeSynthTokenizer(1'020'461, 0, 1));
}

}  // namespace
}  // namespace latte::synth_tokenizer_test
