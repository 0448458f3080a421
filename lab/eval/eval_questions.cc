#include "lab/eval/eval_questions.h"

#include <algorithm>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr int64_t kOperands = 100;
constexpr int64_t kTwoDigits = 10;
constexpr int kSolvedSums = 3;
constexpr int kKeyDigits = 4;

Result<std::vector<int32_t>> Encode(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.Encode(text, {.add_bos = tokenizer.adds_bos()});
}

struct Sum {
  int64_t a, b;
};

// A sum of numbers in [least, 100).
Sum DrawSum(Random& random, int64_t least, bool held_out) {
  const auto draw = [&] {
    return least + static_cast<int64_t>(random.Below(static_cast<uint64_t>(kOperands - least)));
  };
  while (true) {
    const int64_t a = draw();
    const Sum sum = {a, draw()};
    if (IsHeldOutSum(sum.a, sum.b) == held_out) return sum;
  }
}

// Some of `names`, without repetition, in random order.
std::vector<std::string> DrawNames(std::span<const std::string> names, int64_t count,
                                   Random& random) {
  std::vector<std::string> left(names.begin(), names.end());
  std::vector<std::string> out;
  for (int64_t i = 0; i < count; ++i) {
    const auto drawn = left.begin() + static_cast<ptrdiff_t>(random.Below(left.size()));
    out.push_back(*drawn);
    left.erase(drawn);
  }
  return out;
}

std::string DrawKey(Random& random) {
  std::string key;
  for (int i = 0; i < kKeyDigits; ++i) key += static_cast<char>('0' + random.Below(10));
  return key;
}

// `text` followed by stories of at least `tokens` tokens in total.
Result<std::string> WithStories(std::string text, const StoryGrammar& grammar,
                                const Tokenizer& tokenizer, int64_t tokens, Random& random) {
  while (tokens > 0) {
    LATTE_ASSIGN_OR_RETURN(const std::string story, grammar.Generate(random));
    LATTE_ASSIGN_OR_RETURN(const auto ids, tokenizer.Encode(story));
    text += " " + story;
    // An empty story would add nothing; its blank counts as at least one byte.
    tokens -= std::max<int64_t>(1, static_cast<int64_t>(ids.size()));
  }
  return text;
}

}  // namespace

bool IsHeldOutSum(int64_t a, int64_t b) { return (37 * a + 101 * b) % 10 == 3; }

Result<Question> AdditionQuestion(const Tokenizer& tokenizer, Random& random) {
  Question out;
  for (int i = 0; i < kSolvedSums; ++i) {
    const Sum sum = DrawSum(random, 0, false);
    out.text += fmt::format("{}+{}={}. ", sum.a, sum.b, sum.a + sum.b);
  }
  const Sum asked = DrawSum(random, kTwoDigits, true);
  out.text += fmt::format("{}+{}=", asked.a, asked.b);
  out.answer = fmt::format("{}.", asked.a + asked.b);
  LATTE_ASSIGN_OR_RETURN(out.prompt, Encode(tokenizer, out.text));
  return out;
}

Result<Question> RecallQuestion(const StoryGrammar& grammar, std::span<const std::string> names,
                                const Tokenizer& tokenizer, const RecallShape& shape,
                                Random& random) {
  if (static_cast<int64_t>(names.size()) < shape.keys)
    return InvalidArgument(fmt::format("recall of {} keys: expected as many names, found {}",
                                       shape.keys, names.size()));
  const std::vector<std::string> told = DrawNames(names, shape.keys, random);
  std::vector<std::string> keys;
  std::string text;
  for (const std::string& name : told) {
    keys.push_back(DrawKey(random));
    text += fmt::format("{}The key of {} is {}.", text.empty() ? "" : " ", name, keys.back());
  }
  const size_t asked = random.Below(told.size());
  const std::string question = fmt::format(" The key of {} is", told[asked]);
  const size_t first_digit = fmt::format("The key of {} is ", told[0]).size();
  const size_t told_end = text.size();
  LATTE_ASSIGN_OR_RETURN(text, WithStories(text, grammar, tokenizer, shape.distance, random));

  // The longest text that ends with a sentence and keeps the distance. A cut may change the tokens
  // before it, so tokens are counted after the cut.
  LATTE_ASSIGN_OR_RETURN(const auto uncut, Encode(tokenizer, text));
  const size_t start = TokenAt(tokenizer, uncut, first_digit);
  size_t end = text.size();
  while (true) {
    const auto tokens = static_cast<int64_t>(TokenAt(tokenizer, uncut, end) - start);
    if (tokens <= shape.distance || end == told_end) {
      Question out{text.substr(0, end) + question, {}, fmt::format(" {}.", keys[asked])};
      LATTE_ASSIGN_OR_RETURN(out.prompt, Encode(tokenizer, out.text));
      const size_t distance =
          TokenAt(tokenizer, out.prompt, end) - TokenAt(tokenizer, out.prompt, first_digit);
      if (static_cast<int64_t>(distance) <= shape.distance || end == told_end) return out;
    }
    const size_t sentence = text.rfind(". ", end - 2);
    end = std::max(told_end, sentence + 1);
  }
}

size_t TokenAt(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t byte) {
  size_t end = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!tokenizer.IsSpecial(ids[i])) end += tokenizer.TokenBytes(ids[i]).size();
    if (byte < end) return i;
  }
  return ids.size();
}

}  // namespace latte
