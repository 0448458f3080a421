// The questions that `latte eval` asks, in the formats that tiny was trained on. The same arguments
// give the same question on every machine.
//
//   recall    The key of Tom is 4821. <stories> The key of Tom is      answer: " 4821."
//   addition  23+58=81. 7+40=47. 60+11=71. 47+39=                      answer: "86."
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "latte/status.h"

#include "lab/eval/story_grammar.h"
#include "src/base/random.h"
#include "src/text/tokenizer.h"

namespace latte {

struct Question {
  std::string text;
  std::vector<int32_t> prompt;  // of the text; begins with BOS if the tokenizer adds one
  std::string answer;           // the expected text, including its "."
};

// Whether the sum a + b was excluded from the training data. The rule is part of tiny's training
// texts.
bool IsHeldOutSum(int64_t a, int64_t b);

// Three solved sums, then a held-out one; operands in [0, 100), in the question in [10, 100).
// Errors: of Tokenizer::Encode.
[[nodiscard]] Result<Question> AdditionQuestion(const Tokenizer& tokenizer, Random& random);

struct RecallShape {
  // Tokens from the first digit of the first key to the first token of the question. Reached as
  // closely as whole sentences allow, and exceeded only if the keys alone do.
  int64_t distance = 0;
  int64_t keys = 1;  // keys at the start, each with a different name; the question is about one of
                     // them
};

// `names`: people who may have a key; at least shape.keys of them.
// Errors: kInvalidArgument for too few names; of StoryGrammar::Generate and Tokenizer::Encode.
[[nodiscard]] Result<Question> RecallQuestion(const StoryGrammar& grammar,
                                              std::span<const std::string> names,
                                              const Tokenizer& tokenizer, const RecallShape& shape,
                                              Random& random);

// The index of the token that contains byte `byte` of the text that `ids` encode, or ids.size().
size_t TokenAt(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t byte);

}  // namespace latte
