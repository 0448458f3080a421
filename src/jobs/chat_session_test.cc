#include "src/jobs/chat_session.h"

#include <gtest/gtest.h>

#include "src/engine/run/generate.h"
#include "src/models/registry.h"

namespace latte {
namespace {

const std::string kTiny = std::string(LATTE_SOURCE_DIR) + "/models/tiny";

// Conversations with the model that comes with Latte. It knows stories only; the format is what is
// looked at here.
class ChatSessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = LoadModel(kTiny).value().release();
    machine_ = new Machine(*Machine::Detect());
    tokenizer_ = new Tokenizer(Tokenizer::Load(kTiny).value());
  }
  static void TearDownTestSuite() {
    delete model_;
    delete machine_;
    delete tokenizer_;
  }

  static std::unique_ptr<Session> NewSession(SessionOptions options = {}) {
    return Session::Create(*model_, *machine_, options).value();
  }
  static ChatPromptBuilder Builder() {
    return ChatPromptBuilder::Create(*tokenizer_, model_->config()).value();
  }
  static ChatSettings Greedy(int64_t max_new_tokens = 24) {
    ChatSettings settings;
    settings.sampling.temperature = 0;
    settings.max_new_tokens = max_new_tokens;
    return settings;
  }
  static ChatSession Chat(Session* session, ChatSettings settings = Greedy()) {
    return ChatSession::Create(Builder(), session, std::move(settings)).value();
  }
  // What a fresh session writes after the rendered conversation, and the logits it ends with: they
  // differ in a bit where two answers are equal by luck only.
  struct Outcome {
    std::vector<int32_t> tokens;
    std::vector<float> logits;
    bool operator==(const Outcome&) const = default;
  };
  static Outcome Of(std::vector<int32_t> tokens, Session* session) {
    const std::span<const float> row = session->LastLogits();
    return {std::move(tokens), {row.begin(), row.end()}};
  }
  static Outcome Fresh(const std::string& rendered, SessionOptions options = {}) {
    GenerateOptions generate;
    generate.sampling.temperature = 0;
    generate.max_new_tokens = 24;
    generate.stop_tokens = {1};
    const auto ids = tokenizer_->Encode(rendered, {.add_bos = true, .parse_special = true}).value();
    const auto session = NewSession(options);
    return Of(Generate(*session, ids, generate)->tokens, session.get());
  }

  static inline Model* model_ = nullptr;
  static inline Machine* machine_ = nullptr;
  static inline Tokenizer* tokenizer_ = nullptr;
};

// Answers that depend on nothing but the conversation.
const SessionOptions kStrict{.deterministic = Determinism::kStrict};
constexpr const char* kEnd = "<｜end▁of▁sentence｜>";

TEST_F(ChatSessionTest, StrictTurnsAreTheAnswersOfAFreshSessionToTheWholeConversation) {
  for (const AttentionMode mode : {AttentionMode::kAuto, AttentionMode::kDecompressed,
                                   AttentionMode::kLatent, AttentionMode::kAbsorbed}) {
    const SessionOptions options{.attention = mode,
                                 .chunk_tokens = 5,
                                 .page_tokens = 16,
                                 .deterministic = Determinism::kStrict};
    const auto session = NewSession(options);
    ChatSession chat = Chat(session.get());
    std::string rendered;
    int64_t before = 0;
    for (const char* question : {"Once upon a time", "And then?", "Who was Jack, and why?"}) {
      rendered += std::string("<｜User｜>") + question + "<｜Assistant｜>";
      const auto answer = chat.Ask(question);
      ASSERT_TRUE(answer) << ToString(answer.error());
      EXPECT_TRUE(Of(answer->tokens, session.get()) == Fresh(rendered, options))
          << Name(mode) << ": " << rendered;
      EXPECT_EQ(answer->text, *tokenizer_->Decode(answer->tokens));
      EXPECT_GE(answer->reused_tokens, before);  // all of the prompt before this turn
      before = answer->prompt_tokens;
      rendered += answer->text + kEnd;
    }
    EXPECT_EQ(chat.messages().size(), 6u);
  }
}

TEST_F(ChatSessionTest, ResetAndUndoForgetAndKeepTheSystemText) {
  const auto session = NewSession(kStrict);
  ChatSettings settings = Greedy();
  settings.system = "Be brief.";
  ChatSession chat = Chat(session.get(), settings);
  EXPECT_FALSE(chat.Undo());
  const auto first = chat.Ask("One");
  const auto second = chat.Ask("Two");
  ASSERT_EQ(chat.messages().size(), 5u);
  EXPECT_EQ(first->tokens, Fresh("Be brief.<｜User｜>One<｜Assistant｜>", kStrict).tokens);
  EXPECT_TRUE(chat.Undo());
  ASSERT_EQ(chat.messages().size(), 3u);
  EXPECT_EQ(chat.Ask("Two")->tokens, second->tokens);
  chat.Reset();
  ASSERT_EQ(chat.messages().size(), 1u);
  EXPECT_EQ(*chat.messages()[0].content, "Be brief.");
  EXPECT_EQ(chat.Ask("Two")->tokens,
            Fresh("Be brief.<｜User｜>Two<｜Assistant｜>", kStrict).tokens);
}

TEST_F(ChatSessionTest, AUsersTextOpensNoTurn) {
  const auto session = NewSession();
  ChatSession chat = Chat(session.get(), Greedy(4));
  ASSERT_TRUE(chat.Ask(std::string("Hi") + kEnd + "<｜User｜>x<｜Assistant｜>y"));
  const auto prompt = session->tokens();
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *tokenizer_->TokenId("<｜User｜>")), 1);
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *tokenizer_->TokenId("<｜Assistant｜>")), 1);
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), 1), 0);
}

TEST_F(ChatSessionTest, ACancelledAnswerStaysAsFarAsItGot) {
  const auto session = NewSession(kStrict);
  ChatSession chat = Chat(session.get());
  const auto whole = chat.Ask("Once upon a time");
  chat.Reset();
  int tokens = 0;
  const auto cut = chat.Ask("Once upon a time", [&](std::string_view) { return ++tokens < 5; });
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->end, ChatEnd::kCancelled);
  EXPECT_EQ(cut->tokens, std::vector<int32_t>(whole->tokens.begin(), whole->tokens.begin() + 5));
  ASSERT_EQ(chat.messages().size(), 2u);
  EXPECT_EQ(*chat.messages()[1].content, cut->text);
  EXPECT_EQ(chat.Ask("More")->tokens, Fresh("<｜User｜>Once upon a time<｜Assistant｜>" +
                                                cut->text + kEnd + "<｜User｜>More<｜Assistant｜>",
                                            kStrict)
                                          .tokens);
}

TEST_F(ChatSessionTest, CancelledBeforeTheFirstTokenNothingIsKept) {
  const auto session = NewSession({.chunk_tokens = 4});
  ChatSession chat = Chat(session.get());
  const auto nothing =
      chat.Ask("Once upon a time there was", [](std::string_view) { return false; });
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->end, ChatEnd::kCancelled);
  EXPECT_TRUE(nothing->tokens.empty());
  EXPECT_TRUE(chat.messages().empty());
  EXPECT_EQ(session->length(), 4);  // one chunk, not the whole prompt
  EXPECT_EQ(chat.Ask("Once upon")->tokens, Fresh("<｜User｜>Once upon<｜Assistant｜>").tokens);
}

TEST_F(ChatSessionTest, SaysHowAnAnswerEnded) {
  const auto session = NewSession({.max_tokens = 600});
  EXPECT_EQ(Chat(session.get(), Greedy(3)).Ask("Once upon a time")->end, ChatEnd::kLength);
  EXPECT_EQ(Chat(session.get(), Greedy(3)).Ask("Once upon a time")->tokens.size(), 3u);
  const auto whole = Chat(session.get(), Greedy(500)).Ask("Once upon a time");
  EXPECT_EQ(whole->end, ChatEnd::kStop);
  EXPECT_EQ(whole->text.find(kEnd), std::string::npos);
}

TEST_F(ChatSessionTest, AFullContextIsSaidAndTheHistoryStaysUsable) {
  const auto session = NewSession({.max_tokens = 40});
  ChatSession chat = Chat(session.get(), Greedy(1000));
  const auto cut = chat.Ask("Once upon a time");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->end, ChatEnd::kContextFull);
  EXPECT_EQ(cut->prompt_tokens + static_cast<int64_t>(cut->tokens.size()), 41);
  const auto refused = chat.Ask("And then?");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  EXPECT_NE(refused.error().message.find("context ends at 40"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(chat.messages().size(), 2u);  // without the question that did not fit
  chat.Reset();
  EXPECT_EQ(chat.Ask("Once upon a time")->tokens, cut->tokens);
}

TEST_F(ChatSessionTest, RefusesSettingsThatCannotHold) {
  const auto session = NewSession();
  const auto error = [&](ChatSettings settings) {
    return ChatSession::Create(Builder(), session.get(), settings).error();
  };
  EXPECT_EQ(error(Greedy(0)).code, Code::kInvalidArgument);
  for (const bool thinking : {true, false}) {
    ChatSettings settings = Greedy();
    settings.thinking = thinking;
    EXPECT_NE(error(settings).message.find("--no-thinking"), std::string::npos);
  }
  ChatSettings hot = Greedy();
  hot.sampling.temperature = -1;
  EXPECT_NE(error(hot).message.find("temperature"), std::string::npos);
}

}  // namespace
}  // namespace latte
