// Splitter of answers into reasoning, content and calls: a byte that says whether the answer begins
// inside reasoning, a byte that chooses how calls are written, the text of an answer. However the
// text is cut, the pieces together are the same. Without calls, they are the text.
#include <string>

#include "fuzz/fuzz_input.h"
#include "src/chat/answer_splitter.h"

namespace latte::fuzz {
namespace {

struct Parts {
  std::string thought;  // with its marks
  std::string reasoning;
  std::string content;
  std::string calls;  // names and arguments
  bool operator==(const Parts&) const = default;
};

Parts Split(std::string_view text, bool in_thought, std::optional<ToolFormat> calls, size_t step) {
  AnswerSplitter splitter(in_thought, calls);
  Parts all;
  const auto add = [&](const AnswerPiece& piece) {
    all.thought += piece.Thought();
    all.reasoning += piece.reasoning;
    all.content += piece.Content();
    for (const ToolEvent& event : piece.events)
      if (event.kind != ToolEvent::Kind::kContent) all.calls += event.text;
  };
  for (size_t begin = 0; begin < text.size(); begin += step)
    add(splitter.Push(text.substr(begin, step)));
  add(splitter.Finish());
  return all;
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  if (size < 2) return 0;
  const bool in_thought = data[0] % 2 != 0;
  std::optional<ToolFormat> calls;
  if (data[1] % 6 != 5) calls = static_cast<ToolFormat>(data[1] % 6);
  const std::string_view text = fuzz::AsText(data, size).substr(2);
  const auto whole = fuzz::Split(text, in_thought, calls, text.size() + 1);
  for (const size_t step : {1, 2, 7})
    fuzz::Require(fuzz::Split(text, in_thought, calls, step) == whole,
                  "pieces are split as the whole text");
  fuzz::Require(text.starts_with(whole.thought), "reasoning is the beginning of the text");
  if (calls) {
    for (const std::string_view end : CallOpenings(*calls))
      fuzz::Require(whole.reasoning.find(end) == std::string::npos, "a call ends reasoning");
    return 0;
  }
  fuzz::Require(whole.thought + whole.content == text, "the pieces are the text");
  const ChatMessage message = AnswerMessage(text, in_thought);
  fuzz::Require(whole.reasoning == message.reasoning.value_or(""), "reasoning of the message");
  fuzz::Require(whole.content == message.content.value_or(""), "content of the message");
  return 0;
}
