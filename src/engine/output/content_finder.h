// Which bytes of a chat's answer are its content: neither reasoning nor calls of functions. Reads them as the
// reader of answers does (src/chat/answer_splitter.h, src/chat/tools/tool_call_parser.h).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "src/chat/answer_splitter.h"
#include "src/chat/tools/tool_call_parser.h"

namespace latte {

// Thread-compatible.
class ContentFinder {
 public:
  // in_thought: the answer begins inside <think>. calls: how it writes calls; none: it has none.
  ContentFinder(bool in_thought, std::optional<ToolFormat> calls);

  // Bytes of one kind, one after the other.
  struct Run {
    size_t bytes = 0;
    bool content = false;
  };
  // Takes the next byte. Appends the runs that became certain: together they are the text so far, but for
  // undecided() bytes at its end.
  void Push(char byte, std::vector<Run>* runs);
  // The answer ends, and all of it is certain.
  void Finish(std::vector<Run>* runs);

  size_t undecided() const { return splitter_.undecided() + (parser_ ? parser_->undecided() : 0); }
  // Whether what comes next is content, as far as it is known.
  bool in_content() const { return !splitter_.in_reasoning() && !(parser_ && parser_->in_call()); }

 private:
  void AddContent(std::string_view text, std::vector<Run>* runs);
  static void AddCalls(const std::vector<ToolEvent>& events, size_t bytes, std::vector<Run>* runs);

  AnswerSplitter splitter_;
  std::optional<ToolCallParser> parser_;
};

}  // namespace latte
