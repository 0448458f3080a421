#include "lab/eval/eval_questions.h"

#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace latte::eval_questions_test {
namespace {

class EvalQuestionsTest : public testing::Test {
 protected:
  const std::string dir_ = std::string(LATTE_SOURCE_DIR) + "/models/tiny";
  const Tokenizer tokenizer_ = *Tokenizer::Load(dir_);
  const StoryGrammar grammar_ = *StoryGrammar::Load(dir_ + "/story_grammar.json");
  const std::vector<std::string> names_ = *grammar_.Values("hero", "name");

  Question Recall(int64_t distance, int64_t keys, uint64_t stream) const {
    Random random(5, stream);
    auto out = RecallQuestion(grammar_, names_, tokenizer_, {distance, keys}, random);
    EXPECT_TRUE(out) << ToString(out.error());
    return std::move(*out);
  }
  // The bytes of the question's text before " The key of NAME is".
  static size_t QuestionByte(const Question& question) {
    return question.text.rfind(" The key of ");
  }
  // Tokens from the first digit to the question, counted by decoding and thus independent of
  // TokenAt.
  int64_t Distance(const Question& question) const {
    const size_t digit = question.text.find_first_of("0123456789");
    int64_t distance = 0;
    std::string text;
    for (const int32_t id : question.prompt) {
      if (id == *tokenizer_.bos_id()) continue;
      if (text.size() >= digit && text.size() < QuestionByte(question)) ++distance;
      text += tokenizer_.TokenBytes(id);
    }
    EXPECT_EQ(text, question.text);
    return distance;
  }
};

TEST(EvalQuestions, OneSumInTenIsHeldOut) {
  for (const auto& [a, b] : {std::pair{9, 0}, {0, 3}, {3, 2}, {47, 44}, {99, 60}})
    EXPECT_TRUE(IsHeldOutSum(a, b)) << a << "+" << b;
  for (const auto& [a, b] : {std::pair{0, 9}, {47, 39}, {23, 58}, {3, 3}, {0, 0}})
    EXPECT_FALSE(IsHeldOutSum(a, b)) << a << "+" << b;
  int held_out = 0;
  for (int a = 0; a < 100; ++a)
    for (int b = 0; b < 100; ++b) held_out += IsHeldOutSum(a, b) ? 1 : 0;
  EXPECT_EQ(held_out, 1000);
}

TEST_F(EvalQuestionsTest, AdditionShowsThreeSolvedSumsAndAsksAHeldOutOne) {
  std::set<std::string> texts;
  for (uint64_t stream = 0; stream < 300; ++stream) {
    Random random(7, stream);
    const auto question = AdditionQuestion(tokenizer_, random);
    ASSERT_TRUE(question) << ToString(question.error());
    int a[4], b[4], sum[4], read = 0;
    ASSERT_EQ(std::sscanf(question->text.c_str(), "%d+%d=%d. %d+%d=%d. %d+%d=%d. %d+%d=%n", a, b,
                          sum, a + 1, b + 1, sum + 1, a + 2, b + 2, sum + 2, a + 3, b + 3, &read),
              11)
        << question->text;
    EXPECT_EQ(static_cast<size_t>(read), question->text.size()) << question->text;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(a[i] + b[i], sum[i]) << question->text;
      EXPECT_FALSE(IsHeldOutSum(a[i], b[i])) << question->text;
    }
    EXPECT_TRUE(IsHeldOutSum(a[3], b[3])) << question->text;
    EXPECT_TRUE(a[3] >= 10 && a[3] < 100 && b[3] >= 10 && b[3] < 100);
    EXPECT_EQ(question->answer, fmt::format("{}.", a[3] + b[3]));
    EXPECT_EQ(question->prompt, *tokenizer_.Encode(question->text, {.add_bos = true}));
    texts.insert(question->text);
  }
  EXPECT_EQ(texts.size(), 300u);
}

TEST_F(EvalQuestionsTest, RecallTellsKeysAndAsksOneOfThem) {
  std::set<size_t> asked;
  for (const int64_t keys : {1, 4})
    for (uint64_t stream = 0; stream < 20; ++stream) {
      const Question question = Recall(250, keys, stream);
      std::string head;
      std::vector<std::string> told;
      std::string_view rest = question.text;
      for (int64_t i = 0; i < keys; ++i) {
        char name[16], key[16];
        int read = 0;
        ASSERT_EQ(std::sscanf(std::string(rest).c_str(), "The key of %15[A-Za-z] is %15[0-9].%n",
                              name, key, &read),
                  2)
            << question.text;
        EXPECT_EQ(std::string(key).size(), 4u);
        EXPECT_NE(std::find(names_.begin(), names_.end(), name), names_.end()) << name;
        EXPECT_EQ(std::find(told.begin(), told.end(), name), told.end()) << name;
        told.emplace_back(name);
        rest.remove_prefix(static_cast<size_t>(read));
        ASSERT_TRUE(rest.starts_with(' '));
        rest.remove_prefix(1);
        if (question.text.ends_with(fmt::format(" The key of {} is", told.back()))) {
          EXPECT_EQ(question.answer, fmt::format(" {}.", key));
          asked.insert(told.size());
        }
      }
      EXPECT_FALSE(rest.starts_with("The key")) << question.text;
    }
  EXPECT_EQ(asked, (std::set<size_t>{1, 2, 3, 4}));
}

TEST_F(EvalQuestionsTest, TheDistanceIsTheNearestOneNotAbove) {
  for (const int64_t keys : {1, 4})
    for (const int64_t distance :
         {100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 250, 500, 1000, 2000}) {
      const auto stream = static_cast<uint64_t>(distance);
      const Question question = Recall(distance, keys, stream);
      EXPECT_LE(Distance(question), distance);
      // With the same random numbers, the longer text continues with the same stories. One more
      // sentence exceeds the distance.
      const Question longer = Recall(distance + 200, keys, stream);
      const size_t end = QuestionByte(question);
      ASSERT_EQ(longer.text.substr(0, end), question.text.substr(0, end));
      const size_t next = longer.text.find(". ", end) + 1;
      ASSERT_LE(next, QuestionByte(longer));
      const std::string more = longer.text.substr(0, next) + question.text.substr(end);
      EXPECT_GT(Distance({more, *tokenizer_.Encode(more, {.add_bos = true}), ""}), distance);
    }
}

TEST_F(EvalQuestionsTest, TheFillerIsWholeStoriesAndPartOfAnother) {
  const Question question = Recall(1000, 1, 3);
  const size_t told_end = question.text.find(". ") + 2;
  std::string rest = question.text.substr(told_end, QuestionByte(question) - told_end);
  EXPECT_EQ(rest.back(), '.');
  int whole = 0;
  for (size_t end = rest.find(". "); end != std::string::npos; end = rest.find(". ", end + 1)) {
    if (!grammar_.Parse(rest.substr(0, end + 1)).accepted) continue;
    rest.erase(0, end + 2);
    end = 0;
    ++whole;
  }
  EXPECT_GE(whole, 5);
  const StoryVerdict last = grammar_.Parse(rest);
  EXPECT_TRUE(last.accepted || last.at == rest.size()) << rest << "\n" << last.why;
}

TEST_F(EvalQuestionsTest, WithoutRoomForASentenceTheQuestionFollowsAtOnce) {
  const Question question = Recall(0, 1, 1);
  EXPECT_EQ(QuestionByte(question), question.text.find(". ") + 1);
}

TEST_F(EvalQuestionsTest, TheSameSeedAsksTheSameOnEveryMachine) {
  Random random(1, 1);
  EXPECT_EQ(AdditionQuestion(tokenizer_, random)->text, "97+32=129. 92+20=112. 31+33=64. 85+48=");
  EXPECT_EQ(Recall(40, 2, 1).text,
            "The key of Lily is 3044. The key of Oscar is 7141. Long ago, a merry puppy named "
            "Clara lived at the edge "
            "of a forest. The key of Lily is");
}

TEST_F(EvalQuestionsTest, RecallNeedsAsManyNamesAsKeys) {
  Random random(1);
  const std::vector<std::string> names = {"Tom", "Mia"};
  const auto question = RecallQuestion(grammar_, names, tokenizer_, {100, 3}, random);
  ASSERT_FALSE(question);
  EXPECT_EQ(question.error().code, Code::kInvalidArgument);
  EXPECT_NE(question.error().message.find("found 2"), std::string::npos);
}

}  // namespace
}  // namespace latte::eval_questions_test
