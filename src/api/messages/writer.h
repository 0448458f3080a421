// Writes answers in the format of Anthropic's Messages API: a message of blocks, or the events that
// build it. Blocks have the order in which they end: reasoning, text and calls of functions. White
// space alone makes no block of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/api/common/answer_writer.h"

namespace latte {

// The input of a call is an object. Arguments that are none become {"INVALID_JSON": text}, as the
// documentation of the API advises for its own streams.
JsonOut AnthropicInput(std::string_view arguments);

// Thread-compatible. For one prompt with one answer.
class AnthropicWriter final : public AnswerWriter {
 public:
  explicit AnthropicWriter(AnswerWriterParts parts);

  void Add(const AnswerEvent& next, std::string* sse) override;
  void Finish(const ApiAnswer& answer, std::string* sse) override;
  void Fail(const Error& error, const ApiAnswer& answer, std::string* sse) override;
  void KeepAlive(std::string* sse) override;
  std::string Body(const ApiAnswer& answer) const override;

 private:
  enum class Block : uint8_t { kNone, kThinking, kText, kCall };

  void BeginMessage(const ApiAnswer& answer, std::string* sse) const;
  void BeginBlock(Block block, std::string_view content, std::string* sse);
  void EndBlock(std::string* sse);
  void AppendDelta(std::string_view type, std::string_view key, std::string_view text,
                   std::string* sse) const;
  void AddReasoning(std::string_view text, std::string* sse);
  void AddText(std::string_view text, std::string* sse);
  // The events from `first` on that belong to the open call; returns the first that does not.
  size_t AddArguments(const std::vector<ToolEvent>& events, size_t first, std::string* sse) const;
  void AddCalls(const std::vector<ToolEvent>& events, size_t first, std::string* sse);

  AnswerWriterParts parts_;
  bool begun_ = false;
  Block block_ = Block::kNone;  // that is open
  size_t blocks_ = 0;           // that have begun
  size_t call_ = 0;             // that is open
  std::string space_;           // before text that has not come yet
};

}  // namespace latte
