#include "src/api/common/answer_writer.h"

namespace latte {

size_t AnswerEvent::choice() const {
  return prompt * static_cast<size_t>(answer.reply().n) + static_cast<size_t>(event.choice);
}

// A comment, which every reader of server-sent events skips.
void AnswerWriter::KeepAlive(std::string* sse) { *sse += ": waiting\n\n"; }

}  // namespace latte
