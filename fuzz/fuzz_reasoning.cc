// Splitter of answers into reasoning and content: a byte that says whether the answer begins inside
// reasoning, a byte that chooses which marks of calls end it, the text of an answer. However the text
// is cut, the parts are the same, and no text is lost but the tags.
#include <string>

#include "fuzz/fuzz_input.h"
#include "src/chat/answer_message.h"
#include "src/chat/answer_splitter.h"
#include "src/chat/tools/tool_syntax.h"

namespace latte::fuzz {
namespace {

using Parts = AnswerSplitter::Parts;

Parts Split(std::string_view text, bool in_thought, std::span<const std::string_view> ends,
            size_t step) {
  AnswerSplitter splitter(in_thought, ends);
  Parts all;
  const auto add = [&](const Parts& parts) {
    all.reasoning += parts.reasoning;
    all.content += parts.content;
  };
  for (size_t begin = 0; begin < text.size(); begin += step)
    add(splitter.Push(text.substr(begin, step)));
  add(splitter.Flush());
  return all;
}

bool Same(const Parts& a, const Parts& b) {
  return a.reasoning == b.reasoning && a.content == b.content;
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  if (size < 2) return 0;
  const bool in_thought = data[0] % 2 != 0;
  const bool has_tools = data[1] % 6 != 5;
  std::span<const std::string_view> ends;
  if (has_tools) ends = CallOpenings(static_cast<ToolFormat>(data[1] % 6));
  const std::string_view text = fuzz::AsText(data, size).substr(2);
  const auto whole = fuzz::Split(text, in_thought, ends, text.size() + 1);
  for (const size_t step : {1, 2, 7})
    fuzz::Require(fuzz::Same(fuzz::Split(text, in_thought, ends, step), whole),
                  "pieces are split as the whole text");
  fuzz::Require(text.ends_with(whole.content), "content is the end of the text");
  fuzz::Require(text.find(whole.reasoning) != text.npos, "reasoning is part of the text");
  for (const std::string_view end : ends)
    fuzz::Require(whole.reasoning.find(end) == std::string::npos, "a call ends reasoning");
  if (!has_tools) {
    const ChatMessage message = AnswerMessage(text, in_thought);
    fuzz::Require(whole.reasoning == message.reasoning.value_or(""), "reasoning of the message");
    fuzz::Require(whole.content == message.content.value_or(""), "content of the message");
  }
  return 0;
}
