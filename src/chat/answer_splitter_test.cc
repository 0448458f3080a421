#include "src/chat/answer_splitter.h"

#include <vector>

#include "src/chat/answer_message.h"
#include "tests/support/byte_source.h"
#include "tests/support/property.h"

namespace latte::answer_splitter_test {
namespace {

using testing_support::ByteSource;
using Parts = AnswerSplitter::Parts;

void Append(const Parts& more, Parts* all) {
  all->reasoning += more.reasoning;
  all->content += more.content;
}

// The parts of all pieces together.
Parts Split(bool in_thought, const std::vector<std::string>& pieces) {
  AnswerSplitter splitter(in_thought);
  Parts all;
  for (const std::string& piece : pieces) Append(splitter.Push(piece), &all);
  Append(splitter.Flush(), &all);
  return all;
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
        const Parts parts = Split(in_thought, Cut(text, ByteSource(cuts)));
        const ChatMessage whole = AnswerMessage(text, in_thought);
        RC_ASSERT(parts.reasoning == whole.reasoning.value_or(""));
        RC_ASSERT(parts.content == whole.content.value_or(""));
      });
}

// A stream must not wait for the end of the answer.
TEST(AnswerSplitter, HoldsBackNoMoreThanATag) {
  AnswerSplitter content(false);
  EXPECT_EQ(content.Push(" \n<thin").content, "");
  EXPECT_EQ(content.Push("g").content, " \n<thing");
  EXPECT_EQ(content.Push("</think").content, "</think");
  AnswerSplitter reasoning(true);
  EXPECT_TRUE(reasoning.in_reasoning());
  EXPECT_EQ(reasoning.Push("so </thin").reasoning, "so ");
  EXPECT_EQ(reasoning.Push("g</").reasoning, "</thing");
  const Parts parts = reasoning.Push("think>yes");
  EXPECT_EQ(parts.reasoning, "");
  EXPECT_EQ(parts.content, "yes");
  EXPECT_FALSE(reasoning.in_reasoning());
}

}  // namespace
}  // namespace latte::answer_splitter_test
