// Splits the text of an answer into reasoning and content while it is generated. All parts together
// equal AnswerMessage over the whole text, however it is cut, where only </think> ends reasoning.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace latte {

class AnswerSplitter {
 public:
  struct Parts {
    std::string reasoning;
    std::string content;
  };

  // in_thought: the prompt has already opened the <think>. Reasoning also ends where one of the
  // texts `ends` begins, which is content: some models call a function without a </think>. The
  // texts must outlive this.
  explicit AnswerSplitter(bool in_thought, std::span<const std::string_view> ends = {})
      : step_(in_thought ? Step::kReasoning : Step::kBeginning), ends_(ends) {}

  // The text so far ends inside <think>.
  bool in_reasoning() const { return step_ == Step::kReasoning; }
  // Bytes at the end of the text of which it is not certain what they are.
  size_t undecided() const { return held_.size(); }

  // Returns the parts that have become certain with `text`.
  Parts Push(std::string_view text);
  // The answer ends: returns the text that was held back.
  Parts Flush();

 private:
  enum class Step { kBeginning, kReasoning, kContent };

  void Begin(Parts* out);
  void Reason(Parts* out);

  Step step_;
  std::span<const std::string_view> ends_;
  std::string held_;  // may be the beginning of a tag
};

}  // namespace latte
