#include "src/chat/answer_splitter.h"

#include <vector>

#include "tests/support/byte_source.h"
#include "tests/support/property.h"

namespace latte::answer_splitter_test {
namespace {

using testing_support::ByteSource;

struct Texts {
  std::string opening, reasoning, closing, content;
  bool operator==(const Texts&) const = default;
};

void Append(const AnswerPiece& more, Texts* all) {
  all->opening += more.opening;
  all->reasoning += more.reasoning;
  all->closing += more.closing;
  all->content += more.Content();
}

// The parts of all pieces together.
Texts Split(bool in_thought, const std::vector<std::string>& pieces) {
  AnswerSplitter splitter(in_thought);
  Texts all;
  for (const std::string& piece : pieces) Append(splitter.Push(piece), &all);
  Append(splitter.Finish(), &all);
  return all;
}

// The same from the whole text.
Texts PartsOf(bool in_thought, const std::string& text) {
  constexpr std::string_view kOpen = "<think>";
  constexpr std::string_view kClose = "</think>";
  const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (!in_thought && text.compare(begin, kOpen.size(), kOpen) != 0) return {"", "", "", text};
  const size_t opened = in_thought ? 0 : begin + kOpen.size();
  const size_t close = std::min(text.find(kClose, opened), text.size());
  const size_t closed = std::min(close + kClose.size(), text.size());
  return {text.substr(0, opened), text.substr(opened, close - opened),
          text.substr(close, closed - close), text.substr(closed)};
}

// Text that is full of tags and of what almost is one.
std::string TaggedText(ByteSource* choose) {
  std::string text;
  while (!choose->empty()) {
    constexpr std::string_view kPieces[] = {"<think>", "</think>", "<",  "</", "think",
                                            ">",       " ",        "\n", "a",  "é"};
    text += kPieces[choose->Below(std::size(kPieces))];
  }
  return text;
}

std::vector<std::string> Cut(const std::string& text, ByteSource choose) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t length = static_cast<size_t>(choose.Below(9));
    pieces.push_back(text.substr(begin, length));
    begin += choose.empty() ? std::max<size_t>(length, 1) : length;
    if (length == 0 && choose.empty()) pieces.back() = text.substr(begin - 1, 1);
  }
  return pieces;
}

TEST(AnswerSplitter, PartsAreThoseOfTheWholeTextHoweverItIsCut) {
  testing_support::CheckProperty(
      5'000, 60,
      [](const std::vector<uint8_t>& what, const std::vector<uint8_t>& cuts, bool in_thought) {
        ByteSource choose(what);
        const std::string text = TaggedText(&choose);
        RC_ASSERT(Split(in_thought, Cut(text, ByteSource(cuts))) == PartsOf(in_thought, text));
      });
}

// A stream must not wait for the end of the answer.
TEST(AnswerSplitter, HoldsBackNoMoreThanATag) {
  AnswerSplitter content(false);
  EXPECT_EQ(content.Push(" \n<thin").Content(), "");
  EXPECT_EQ(content.Push("g").Content(), " \n<thing");
  EXPECT_EQ(content.Push("</think").Content(), "</think");
  AnswerSplitter reasoning(true);
  EXPECT_TRUE(reasoning.in_reasoning());
  EXPECT_EQ(reasoning.Push("so </thin").reasoning, "so ");
  EXPECT_EQ(reasoning.Push("g</").reasoning, "</thing");
  const AnswerPiece parts = reasoning.Push("think>yes");
  EXPECT_EQ(parts.reasoning, "");
  EXPECT_EQ(parts.Content(), "yes");
  EXPECT_FALSE(reasoning.in_reasoning());
}

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

// Without a </think>, too: the call is no reasoning.
TEST(AnswerSplitter, ACallEndsReasoning) {
  AnswerSplitter splitter(true, ToolFormat::kGlm);
  const AnswerPiece piece = splitter.Push("So.<tool_call>f\n<arg_key>a");
  EXPECT_EQ(piece.reasoning, "So.");
  EXPECT_EQ(piece.closing, "");
  EXPECT_EQ(piece.Content(), "");
  ASSERT_FALSE(piece.events.empty());
  EXPECT_EQ(piece.events[0], (ToolEvent{.kind = ToolEvent::Kind::kCallBegin, .text = "f"}));
  EXPECT_FALSE(splitter.in_reasoning());
  EXPECT_FALSE(splitter.in_content());
  const AnswerPiece rest = splitter.Finish(/*cut=*/true);
  EXPECT_EQ(rest.Content(), "");
  EXPECT_EQ(splitter.undecided(), 0u);
}

}  // namespace
}  // namespace latte::answer_splitter_test
