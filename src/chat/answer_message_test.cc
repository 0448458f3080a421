#include "src/chat/answer_message.h"

#include <gtest/gtest.h>

namespace latte::answer_message_test {
namespace {

TEST(AnswerMessage, TakesTheReasoningApart) {
  const auto reasoning = [](std::string_view text, bool in_thought) {
    return AnswerMessage(text, in_thought).reasoning.value_or("none");
  };
  const auto content = [](std::string_view text, bool in_thought) {
    const ChatMessage message = AnswerMessage(text, in_thought);
    EXPECT_EQ(message.role, "assistant");
    return *message.content;
  };
  EXPECT_EQ(reasoning("so</think>\n\nyes", true), "so");
  EXPECT_EQ(content("so</think>\n\nyes", true), "\n\nyes");
  EXPECT_EQ(reasoning("\n<think>so</think>yes", false), "so");
  EXPECT_EQ(content("\n<think>so</think>yes", false), "yes");
  EXPECT_EQ(reasoning("still at it", true), "still at it");
  EXPECT_EQ(content("still at it", true), "");
  EXPECT_EQ(reasoning("a </think> b", false), "none");
  EXPECT_EQ(content("a </think> b", false), "a </think> b");
  EXPECT_EQ(content(" ", false), " ");
}

}  // namespace
}  // namespace latte::answer_message_test
