// Finds the bytes of a chat's answer that are content, not reasoning or function calls.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "src/chat/answer_splitter.h"

namespace latte {

// Thread-compatible.
class ContentFinder {
 public:
  // in_thought: the answer begins inside <think>. calls: how it writes calls; none: it has none.
  ContentFinder(bool in_thought, std::optional<ToolFormat> calls) : splitter_(in_thought, calls) {}

  // Bytes of one kind, one after the other.
  struct Run {
    size_t bytes = 0;
    bool content = false;
  };
  // Takes the next byte. Appends the runs that became certain: together they are the text so far,
  // but for undecided() bytes at its end.
  void Push(char byte, std::vector<Run>* runs);
  // The answer ends, and all of it is certain.
  void Finish(std::vector<Run>* runs);

  size_t undecided() const { return splitter_.undecided(); }
  // Whether what comes next is content, as far as it is known.
  bool in_content() const { return splitter_.in_content(); }

 private:
  AnswerSplitter splitter_;
};

}  // namespace latte
