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

#include "src/base/random.h"
#include "src/jobs/eval/story_grammar.h"
#include "src/text/tokenizer.h"

namespace latte {

struct Question {
  std::string text;
  std::vector<int32_t> prompt;  // of the text; BOS first if the tokenizer puts one
  std::string answer;           // what must follow, its "." included
};

// Whether the sum a + b was kept out of the training. The rule is part of tiny's training texts.
bool IsHeldOutSum(int64_t a, int64_t b);

// Three solved sums, then a held-out one; operands in [0, 100), those asked in [10, 100). Errors:
// of Tokenizer::Encode.
[[nodiscard]] Result<Question> AdditionQuestion(const Tokenizer& tokenizer, Random& random);

struct RecallShape {
  // Tokens from the first digit of the first key to the question's first token. Reached as nearly
  // as whole sentences allow, and never passed unless the keys alone do.
  int64_t distance = 0;
  int64_t keys = 1;  // told at the start, each of another name; one of them is asked
};

// `names`: who may have a key; at least shape.keys of them. Errors: kInvalidArgument for too few
// names; of StoryGrammar::Generate and Tokenizer::Encode.
[[nodiscard]] Result<Question> RecallQuestion(const StoryGrammar& grammar,
                                              std::span<const std::string> names,
                                              const Tokenizer& tokenizer, const RecallShape& shape,
                                              Random& random);

// The index of the token that holds byte `byte` of the text that `ids` encode, or ids.size().
size_t TokenAt(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t byte);

}  // namespace latte
