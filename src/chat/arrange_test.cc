#include "src/chat/arrange.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace latte::arrange_test {
namespace {

ChatMessage Said(std::string role, std::string content) {
  return {.role = std::move(role), .content = std::move(content)};
}

// Calls of the functions f, g, h … with these ids.
ChatMessage Calls(const std::vector<std::string>& ids) {
  ChatMessage out{.role = "assistant"};
  for (const std::string& id : ids)
    out.tool_calls.push_back(
        {id, std::string(1, static_cast<char>('f' + out.tool_calls.size())), "{}"});
  return out;
}

ChatMessage Returned(std::optional<std::string> id, std::optional<std::string> content,
                     std::optional<std::string> name = {}) {
  return {.role = "tool",
          .content = std::move(content),
          .tool_call_id = std::move(id),
          .name = std::move(name)};
}

// "u", "[x y]" for calls, "x=RX" for results, in order.
std::string Shown(const std::vector<ChatMessage>& messages) {
  std::string out;
  for (const ChatMessage& m : messages) {
    out += out.empty() ? "" : " ";
    if (m.role == "tool") {
      out += m.tool_call_id.value_or("null") + "=" + m.content.value_or("null");
      continue;
    }
    out += m.content.value_or("");
    std::string ids;
    for (const ToolCall& call : m.tool_calls)
      ids += (&call == m.tool_calls.data() ? "" : " ") + call.id;
    if (!m.tool_calls.empty()) out += "[" + ids + "]";
  }
  return out;
}

std::string Arranged(const std::vector<ChatMessage>& messages) {
  const auto arranged = ArrangeToolResults(ChatFormat::kDeepseekV3, messages);
  return arranged ? Shown(arranged->messages) : arranged.error().message;
}

const ChatMessage kUser = Said("user", "u");

TEST(ArrangeResults, ComeInTheOrderOfTheCalls) {
  const ChatMessage x = Returned("x", "RX");
  const ChatMessage y = Returned("y", "RY");
  const ChatMessage z = Returned("z", "RZ");
  const std::string ordered = "u [x y z] x=RX y=RY z=RZ";
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y", "z"}), x, y, z}), ordered);
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y", "z"}), z, y, x}), ordered);
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y", "z"}), y, z, x}), ordered);
}

TEST(ArrangeResults, FollowTheirCallsWhateverStandsBetween) {
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"}), Returned("y", "RY"), Said("system", "s"),
                      Returned("x", "RX"), kUser}),
            "u [x y] x=RX y=RY s u");
  // A result that comes after a later answer, and calls of two answers at once.
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"}), Returned("x", "RX"), Said("assistant", "a"),
                      Returned("y", "RY"), kUser}),
            "u [x y] x=RX y=RY a u");
  EXPECT_EQ(Arranged({kUser, Calls({"x"}), Calls({"y"}), Returned("x", "RX"), Returned("y", "RY")}),
            "u [x] x=RX [y] y=RY");
}

TEST(ArrangeResults, ACallWithoutAResultKeepsItsPlace) {
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y", "z"}), Returned("z", "RZ"), Returned("x", "RX")}),
            "u [x y z] x=RX y=(no result) z=RZ");
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"}), kUser}), "u [x y] x=(no result) y=(no result) u");
  EXPECT_EQ(Arranged({kUser, Calls({"x"}), Calls({"y"}), Returned("x", "RX"), kUser}),
            "u [x] x=RX [y] y=(no result) u");
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"})}), "u [x y]");  // the client's turn
  EXPECT_EQ(Arranged({kUser, Calls({"x"}), Calls({"y"}), Returned("x", "RX")}), "u [x] x=RX [y]");
}

TEST(ArrangeResults, WithoutTextAreEmpty) {
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"}), Returned("y", {}), Returned("x", "")}),
            "u [x y] x= y=");
}

TEST(ArrangeResults, OfOneCallAreOneResult) {
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"}), Returned("x", "a"), Returned("y", "RY"),
                      Returned("x", "b")}),
            "u [x y] x=a\nb y=RY");
  EXPECT_EQ(Arranged({kUser, Calls({"x"}), Returned("x", "a"), Returned("x", "a")}), "u [x] x=a");
}

// Some clients number the calls of every answer anew.
TEST(ArrangeResults, AnIdThatComesAgainIsThatOfTheLatestCall) {
  EXPECT_EQ(Arranged({kUser, Calls({"0", "1"}), Returned("1", "b"), Returned("0", "a"), kUser,
                      Calls({"0", "1"}), Returned("1", "d"), Returned("0", "c")}),
            "u [0 1] 0=a 1=b u [0 1] 0=c 1=d");
  EXPECT_EQ(Arranged({kUser, Calls({"0", "0"}), Returned("0", "a"), Returned("0", "b")}),
            "u [0 0] 0=a 0=b");
}

TEST(ArrangeResults, IdsWithOtherSignsAreTheSame) {
  EXPECT_EQ(Arranged({kUser, Calls({"functions.f:0", "functions.g:1"}),
                      Returned("functions_g_1", "b"), Returned("functionsf0", "a")}),
            "u [functions.f:0 functions.g:1] functions.f:0=a functions.g:1=b");
  // An equal id goes before a similar one.
  EXPECT_EQ(Arranged({kUser, Calls({"a-1", "a1"}), Returned("a1", "b"), Returned("a-1", "a")}),
            "u [a-1 a1] a-1=a a1=b");
}

TEST(ArrangeResults, WithoutIdsFollowNamesAndOrder) {
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"}), Returned({}, "RY", "g"), Returned({}, "RX", "f")}),
            "u [x y] x=RX y=RY");
  EXPECT_EQ(Arranged({kUser, Calls({"x", "y"}), Returned({}, "RX"), Returned("", "RY")}),
            "u [x y] x=RX y=RY");
  EXPECT_EQ(Arranged({kUser, Calls({"", ""}), Returned("1", "RX"), Returned("2", "RY")}),
            "u [ ] =RX =RY");
}

TEST(ArrangeResults, OfNoCallAreRefusedWithTheIdsThatAreOpen) {
  const std::pair<std::vector<ChatMessage>, std::vector<std::string>> table[] = {
      {{kUser, Calls({"x", "y"}), Returned("x", "RX"), Returned("z", "RZ")},
       {"message 3", "'z'", "without a result: 'y'"}},
      {{kUser, Returned("1", "rain")}, {"message 1", "'tool'", "'1'", "without a result: none"}},
      {{kUser, Calls({"x"}), Returned({}, "RX"), Returned({}, "more")},
       {"message 3", "no tool_call_id", "none"}},
      {{Returned("x", "RX"), Calls({"x"})}, {"message 0", "'x'"}},
  };
  for (const auto& [messages, words] : table) {
    const auto arranged = ArrangeToolResults(ChatFormat::kDeepseekV3, messages);
    ASSERT_FALSE(arranged) << Shown(messages);
    EXPECT_EQ(arranged.error().code, Code::kInvalidArgument);
    for (const std::string& word : words)
      EXPECT_NE(arranged.error().message.find(word), std::string::npos) << arranged.error().message;
  }
}

TEST(ArrangeResults, EveryMessageKnowsWhereItWas) {
  const std::vector<ChatMessage> messages = {kUser, Calls({"x", "y", "z"}), Returned("z", "RZ"),
                                             Said("user", "v"), Returned("x", "RX")};
  const ArrangedChat chat = ArrangeToolResults(ChatFormat::kKimiK2, messages).value();
  EXPECT_EQ(Shown(chat.messages), "u [x y z] x=RX y=(no result) z=RZ v");
  EXPECT_EQ(chat.places, (std::vector<size_t>{0, 1, 4, 1, 2, 3}));
}

TEST(ArrangeResults, ManyCallsWithOneIdTakeLinearTime) {
  constexpr size_t kMany = 20'000;
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < kMany; ++i) messages.push_back(Calls({"x"}));
  for (size_t i = 0; i < kMany; ++i) messages.push_back(Returned("x", "r"));
  const auto chat = ArrangeToolResults(ChatFormat::kDeepseekV3, messages);
  ASSERT_TRUE(chat) << chat.error().message;
  EXPECT_EQ(chat->messages.size(), 2 * kMany);
}

TEST(ArrangeKimi, CallsHaveTheIdsThatTheModelKnows) {
  std::vector<ChatMessage> chat =
      ArrangeToolResults(
          ChatFormat::kKimiK2,
          std::vector{kUser, Calls({"call_a", "toolu_b"}), Returned("toolu_b", "b"),
                      Returned("call_a", "a"), kUser, Calls({"functions.f:7", "functions_g_3"}),
                      Returned("functions.f:7", "c")})
          ->messages;
  NameCallsAsKimi(&chat);
  EXPECT_EQ(Shown(chat),
            "u [functions.f:0 functions.g:1] functions.f:0=a functions.g:1=b u "
            "[functions.f:7 functions.g:3] functions.f:7=c functions.g:3=(no result)");
}

TEST(ArrangeSystem, JoinsTheUserBeforeIt) {
  ArrangedChat chat;
  chat.messages = {
      Said("system", "s"), kUser, Said("system", "a"), Said("system", "b"), Said("assistant", "c"),
      Said("system", "d"), kUser, Said("system", "")};
  for (size_t i = 0; i < chat.messages.size(); ++i) chat.places.push_back(i);
  JoinSystemToUsers(&chat);
  EXPECT_EQ(Shown(chat.messages), "s u\n\na\n\nb c d u");
  EXPECT_EQ(chat.places, (std::vector<size_t>{0, 1, 4, 5, 6}));
}

}  // namespace
}  // namespace latte::arrange_test
