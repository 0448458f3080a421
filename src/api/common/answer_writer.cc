#include "src/api/common/answer_writer.h"

#include <utility>

#include "src/api/messages/writer.h"
#include "src/api/completions/completion_writer.h"
#include "src/api/responses/writer.h"

namespace latte {

size_t AnswerEvent::choice() const {
  return prompt * static_cast<size_t>(answer.reply().n) + static_cast<size_t>(event.choice);
}

// A comment, which every reader of server-sent events skips.
void AnswerWriter::KeepAlive(std::string* sse) { *sse += ": waiting\n\n"; }

std::unique_ptr<AnswerWriter> MakeAnswerWriter(AnswerWriterParts parts) {
  switch (parts.reply.endpoint) {
    case OpenAiEndpoint::kChat:
    case OpenAiEndpoint::kCompletions:
      break;
    case OpenAiEndpoint::kResponses:
      return std::make_unique<ResponsesWriter>(std::move(parts));
    case OpenAiEndpoint::kMessages:
      return std::make_unique<AnthropicWriter>(std::move(parts));
  }
  return std::make_unique<CompletionWriter>(std::move(parts));
}

}  // namespace latte
