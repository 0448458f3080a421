// Writes answers as /v1/responses does: output items (reasoning, message, calls of functions), as
// one body or as typed events with sequence numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/api/common/answer_writer.h"
#include "src/api/responses/reply.h"
#include "src/base/json_out.h"

namespace latte {

// Thread-compatible.
class ResponsesWriter final : public AnswerWriter {
 public:
  // Requires: parts.reply.responses.
  explicit ResponsesWriter(AnswerWriterParts parts) : parts_(std::move(parts)) {}

  void Add(const AnswerEvent& next, std::string* sse) override;
  // response.completed, or response.incomplete.
  void Finish(const ApiAnswer& answer, std::string* sse) override;
  // response.failed.
  void Fail(const Error& error, const ApiAnswer& answer, std::string* sse) override;
  // response.in_progress again: Codex ends a stream that has no event for long, and a comment is
  // none.
  void KeepAlive(std::string* sse) override;
  std::string Body(const ApiAnswer& answer) const override;

 private:
  enum class Kind : uint8_t { kReasoning, kMessage, kCall };
  // The output item that grows.
  struct Item {
    Kind kind = Kind::kMessage;
    std::string id;
    std::string text;  // or arguments
    size_t call = 0;   // of kCall: its number in the answer
    std::string call_id = {};
    ResponsesTool tool = {};
  };

  // Each appends the events that it makes.
  void AddPiece(const ApiPiece& piece, std::string* sse);
  void Begin(std::string* sse);
  void SayInProgress(std::string* sse);
  void AddReasoning(std::string_view text, std::string* sse);
  void AddContent(std::string_view text, std::string* sse);
  void AddCall(const ToolEvent& event, std::string* sse);
  void Open(Item item, std::string* sse);
  void AppendText(std::string_view text, std::string* sse);
  void Close(bool complete, std::string* sse);
  void CloseLast(const ApiAnswer& answer, std::string* sse);

  JsonOut ItemJson(const Item& item, std::string_view status) const;
  JsonOut ResponseJson(std::string_view status) const;
  JsonOut EndJson(const ApiAnswer& answer) const;
  // An event. `members`: JSON text of its members but type and sequence_number.
  void Event(std::string_view type, std::string_view members, std::string* sse);
  // The same with the place of the open item; `content`: and of its one part.
  void ItemEvent(std::string_view type, bool content, std::string_view members, std::string* sse);

  AnswerWriterParts parts_;
  bool begun_ = false;
  int64_t next_number_ = 0;
  std::string held_;  // white space that may come before a call
  std::optional<Item> open_;
  JsonOut output_ = JsonOut::array();  // whole items
};

}  // namespace latte
