#include "src/api/messages/writer.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/json_text.h"
#include "src/api/messages/call_id.h"
#include "src/api/messages/error.h"
#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/base/strings.h"

namespace latte {
namespace {

// Reasoning is not signed, but clients drop blocks without a signature.
constexpr std::string_view kSignature = "latte";

void AppendEvent(std::string_view type, std::string_view members, std::string* sse) {
  fmt::format_to(std::back_inserter(*sse), "event: {0}\ndata: {{\"type\":\"{0}\"{1}{2}}}\n\n", type,
                 members.empty() ? "" : ",", members);
}

// Tokens of the prompt that were in the cache are no input_tokens.
JsonOut MessagesUsage(const ApiUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.generated_tokens},
          {"output_tokens_details", {{"thinking_tokens", usage.reasoning_tokens}}},
          {"server_tool_use", nullptr}};
}

std::string_view StopReason(const ApiAnswer& answer) {
  const std::string_view name = answer.FinishName(0);
  if (name == "length") return "max_tokens";
  if (name == "tool_calls") return "tool_use";
  return answer.choice(0).stop_string.empty() ? "end_turn" : "stop_sequence";
}

JsonOut StopSequence(const ApiAnswer& answer) {
  if (StopReason(answer) != "stop_sequence") return nullptr;
  return answer.choice(0).stop_string;
}

// Members of things that Latte lacks are null: clients with strict types expect them.
JsonOut MessagesReply(const AnswerWriterParts& parts, const ApiAnswer& answer) {
  JsonOut usage = MessagesUsage(answer.usage());
  usage.update(
      {{"cache_creation", nullptr}, {"inference_geo", nullptr}, {"service_tier", "standard"}});
  return {{"id", "msg_" + parts.id},    {"type", "message"},           {"role", "assistant"},
          {"model", parts.reply.model}, {"content", JsonOut::array()}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr},   {"stop_details", nullptr},     {"container", nullptr},
          {"usage", std::move(usage)}};
}

}  // namespace

JsonOut AnthropicInput(std::string_view arguments) {
  const Result<Json> json = Json::Parse(arguments, "arguments");
  if (json && json->is_object())
    if (Result<JsonOut> input = ParseToEdit(arguments, "arguments")) return std::move(*input);
  return {{std::string(kInvalidJson), arguments}};
}

AnthropicWriter::AnthropicWriter(AnswerWriterParts parts) : parts_(std::move(parts)) {}

void AnthropicWriter::KeepAlive(std::string* sse) { AppendEvent("ping", "", sse); }

void AnthropicWriter::BeginMessage(const ApiAnswer& answer, std::string* sse) const {
  AppendEvent("message_start", R"("message":)" + Dump(MessagesReply(parts_, answer)), sse);
}

void AnthropicWriter::EndBlock(std::string* sse) {
  if (block_ == Block::kThinking) AppendDelta("signature_delta", "signature", kSignature, sse);
  if (block_ != Block::kNone)
    AppendEvent("content_block_stop", fmt::format(R"("index":{})", blocks_ - 1), sse);
  block_ = Block::kNone;
}

void AnthropicWriter::BeginBlock(Block block, std::string_view content, std::string* sse) {
  EndBlock(sse);
  AppendEvent("content_block_start",
              fmt::format(R"("index":{},"content_block":{{{}}})", blocks_++, content), sse);
  block_ = block;
}

void AnthropicWriter::AppendDelta(std::string_view type, std::string_view key,
                                  std::string_view text, std::string* sse) const {
  AppendEvent("content_block_delta",
              fmt::format(R"("index":{},"delta":{{"type":"{}","{}":{}}})", blocks_ - 1, type, key,
                          JsonString(text)),
              sse);
}

void AnthropicWriter::AddReasoning(std::string_view text, std::string* sse) {
  if (text.empty()) return;
  if (block_ != Block::kThinking)
    BeginBlock(Block::kThinking, R"("type":"thinking","thinking":"","signature":"")", sse);
  AppendDelta("thinking_delta", "thinking", text, sse);
}

void AnthropicWriter::AddText(std::string_view text, std::string* sse) {
  if (text.empty()) return;
  if (block_ != Block::kText && IsBlank(text)) {
    space_ += text;
    return;
  }
  if (block_ != Block::kText)
    BeginBlock(Block::kText, R"("type":"text","text":"","citations":null)", sse);
  AppendDelta("text_delta", "text", std::exchange(space_, {}).append(text), sse);
}

size_t AnthropicWriter::AddArguments(const std::vector<ToolEvent>& events, size_t first,
                                     std::string* sse) const {
  std::string text;
  for (; first < events.size() && events[first].kind == ToolEvent::Kind::kArguments &&
         events[first].call == call_;
       ++first)
    text += events[first].text;
  if (!text.empty()) AppendDelta("input_json_delta", "partial_json", text, sse);
  return first;
}

void AnthropicWriter::AddCalls(const std::vector<ToolEvent>& events, size_t first,
                               std::string* sse) {
  while (first < events.size()) {
    const ToolEvent& begin = events[first];  // of a call
    call_ = begin.call;
    space_.clear();
    BeginBlock(
        Block::kCall,
        fmt::format(
            R"("type":"tool_use","id":{},"name":{},"input":{{}},"caller":{{"type":"direct"}})",
            JsonString(EncodeCallId(CallId(begin.id, parts_.id, 0, begin.call))),
            JsonString(begin.text)),
        sse);
    first = AddArguments(events, first + 1, sse);
  }
}

void AnthropicWriter::Add(const AnswerEvent& next, std::string* sse) {
  if (!std::exchange(begun_, true)) BeginMessage(next.answer, sse);
  const ApiPiece& piece = next.piece;
  AddReasoning(piece.reasoning, sse);
  // Text of the same event comes after the end of the call that is open, and before the next call.
  const size_t others = block_ == Block::kCall ? AddArguments(piece.calls, 0, sse) : 0;
  AddText(piece.content, sse);
  AddCalls(piece.calls, others, sse);
}

void AnthropicWriter::Finish(const ApiAnswer& answer, std::string* sse) {
  EndBlock(sse);
  const JsonOut delta = {{"stop_reason", StopReason(answer)},
                         {"stop_sequence", StopSequence(answer)},
                         {"stop_details", nullptr},
                         {"container", nullptr}};
  AppendEvent(
      "message_delta",
      fmt::format(R"("delta":{},"usage":{})", Dump(delta), Dump(MessagesUsage(answer.usage()))),
      sse);
  AppendEvent("message_stop", "", sse);
}

void AnthropicWriter::Fail(const Error& error, const ApiAnswer& /*answer*/, std::string* sse) {
  *sse += AnthropicErrorEvent(error, parts_.id);
}

std::string AnthropicWriter::Body(const ApiAnswer& answer) const {
  const ApiMessage message = answer.Message(0);
  JsonOut out = MessagesReply(parts_, answer);
  JsonOut& content = out["content"];
  if (message.reasoning && !message.reasoning->empty())
    content.push_back(
        {{"type", "thinking"}, {"thinking", *message.reasoning}, {"signature", kSignature}});
  if (!IsBlank(message.content))
    content.push_back({{"type", "text"}, {"text", message.content}, {"citations", nullptr}});
  for (size_t i = 0; i < message.calls.size(); ++i)
    content.push_back({{"type", "tool_use"},
                       {"id", EncodeCallId(CallId(message.calls[i].id, parts_.id, 0, i))},
                       {"name", message.calls[i].name},
                       {"input", AnthropicInput(message.calls[i].arguments)},
                       {"caller", {{"type", "direct"}}}});
  out["stop_reason"] = StopReason(answer);
  out["stop_sequence"] = StopSequence(answer);
  return Dump(out);
}

}  // namespace latte
