// Splits the text of an answer into reasoning, content and function calls while it is generated.
// Only this file parses <think> and </think> in answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/chat/template_format.h"
#include "src/chat/tools/tool_call_parser.h"

namespace latte {

// What became certain of an answer, in the order of its text.
struct AnswerPiece {
  std::string opening;  // white space and <think>
  std::string reasoning;
  std::string closing;            // </think>
  std::vector<ToolEvent> events;  // content and calls

  bool empty() const { return Thought().empty() && events.empty(); }
  std::string Content() const;  // of all events
  // Reasoning with the marks around it, which are as they stand in the text.
  std::string Thought() const { return opening + reasoning + closing; }
};

// Thread-compatible.
class AnswerSplitter {
 public:
  // in_thought: the prompt has already opened the <think>. calls: how the model writes calls; none:
  // all that is no reasoning is content. Reasoning ends with </think>, and where a call begins:
  // some models call a function without a </think>. known: as ToolCallParser has it.
  explicit AnswerSplitter(bool in_thought, std::optional<ToolFormat> calls = {},
                          std::shared_ptr<const KnownFunctions> known = nullptr);

  // The text so far ends inside <think>.
  bool in_reasoning() const { return step_ == Step::kReasoning; }
  // Whether what comes next is content, as far as it is known.
  bool in_content() const { return !in_reasoning() && !(parser_ && parser_->in_call()); }
  // Bytes at the end of the text of which it is not certain what they are.
  size_t undecided() const { return held_.size() + (parser_ ? parser_->undecided() : 0); }

  // Returns what has become certain with `text`. All pieces together do not depend on how the text
  // is cut; without calls, they are the text.
  AnswerPiece Push(std::string_view text);
  // The answer ends: returns the rest. cut: as ToolCallParser::Finish has it.
  AnswerPiece Finish(bool cut = false);

 private:
  enum class Step : uint8_t { kBeginning, kReasoning, kContent };

  void Begin(AnswerPiece* out);
  void Reason(AnswerPiece* out);
  void AddContent(std::string_view text, AnswerPiece* out);

  Step step_;
  std::span<const std::string_view> ends_;  // of reasoning, apart from </think>
  std::optional<ToolCallParser> parser_;
  std::string held_;  // may be the beginning of a tag
};

// The message for the whole text of an answer without calls. It has a reasoning, which may be
// empty, if the text or the prompt opens a <think>.
ChatMessage AnswerMessage(std::string_view text, bool in_thought);

}  // namespace latte
