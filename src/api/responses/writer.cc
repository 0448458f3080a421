#include "src/api/responses/writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/error.h"
#include "src/api/common/json_text.h"
#include "src/base/strings.h"
#include "src/engine/request/prompt_too_long.h"

namespace latte {
namespace {

// Clients with strict types expect cache_write_tokens, which the service charges for.
JsonOut ResponsesUsage(const ApiUsage& usage) {
  return {
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.generated_tokens},
      {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.generated_tokens}};
}

JsonOut TextPart(std::string_view text) {
  return {{"type", "output_text"},
          {"annotations", JsonOut::array()},
          {"logprobs", JsonOut::array()},
          {"text", text}};
}

JsonOut ReasoningPart(std::string_view text) {
  return {{"type", "reasoning_text"}, {"text", text}};
}

// The text that a model put into the one parameter of a custom tool; all that it wrote if it did
// not keep to that.
std::string CustomInput(const std::string& arguments) {
  const Result<JsonOut> parsed = ParseToEdit(arguments, "arguments");
  if (!parsed || !parsed->is_object()) return arguments;
  for (const std::string_view name : {std::string_view("input"), kInvalidJson})
    if (const auto text = parsed->find(name); text != parsed->end() && text->is_string())
      return text->get<std::string>();
  return arguments;
}

std::string_view ErrorCode(const Error& error) {
  const int status = HttpStatus(error.code);
  if (FindPromptTooLong(error)) return kContextLengthExceeded;
  return status >= 500 ? "server_error" : status == 429 ? "rate_limit_exceeded" : "invalid_prompt";
}

}  // namespace

JsonOut ResponsesWriter::ItemJson(const Item& item, std::string_view status) const {
  JsonOut out = {{"id", item.id}};
  const bool begins = status == "in_progress";
  if (item.kind == Kind::kReasoning) {
    out["type"] = "reasoning";
    out["summary"] = JsonOut::array();
    out["content"] = JsonOut::array();
    if (!begins) out["content"].push_back(ReasoningPart(item.text));
    if (parts_.reply.responses->gives_reasoning_back)
      out["encrypted_content"] =
          begins ? JsonOut(nullptr) : JsonOut(std::string(kPlainReasoning) + item.text);
  } else if (item.kind == Kind::kMessage) {
    out["type"] = "message";
    out["role"] = "assistant";
    out["content"] = JsonOut::array();
    if (!begins) out["content"].push_back(TextPart(item.text));
  } else {
    out["type"] = item.tool.custom ? "custom_tool_call" : "function_call";
    out["call_id"] = item.call_id;
    out["name"] = item.tool.name;
    if (!item.tool.name_space.empty()) out["namespace"] = item.tool.name_space;
    if (item.tool.custom)
      out["input"] = begins ? "" : CustomInput(item.text);
    else
      out["arguments"] = begins ? "" : item.text;
  }
  out["status"] = status;
  return out;
}

JsonOut ResponsesWriter::ResponseJson(std::string_view status) const {
  JsonOut out = {{"id", "resp_" + parts_.id},
                 {"object", "response"},
                 {"created_at", parts_.created},
                 {"status", status},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"model", parts_.reply.model},
                 {"output", output_}};
  out.update(parts_.reply.responses->settings);
  out["usage"] = nullptr;
  return out;
}

// Requires: the answer has ended without error, and no item is open.
JsonOut ResponsesWriter::EndJson(const ApiAnswer& answer) const {
  const FinishReason finish = *answer.choice(0).finish;
  JsonOut out = ResponseJson(finish == FinishReason::kStop     ? "completed"
                             : finish == FinishReason::kLength ? "incomplete"
                                                               : "cancelled");
  if (finish == FinishReason::kLength)
    out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  out["usage"] = ResponsesUsage(answer.usage());
  return out;
}

void ResponsesWriter::Event(std::string_view type, std::string_view members, std::string* sse) {
  if (sse == nullptr) return;
  fmt::format_to(std::back_inserter(*sse),
                 "event: {}\ndata: {{\"type\":\"{}\",\"sequence_number\":{},", type, type,
                 next_number_++);
  *sse += members;
  *sse += "}\n\n";
}

void ResponsesWriter::ItemEvent(std::string_view type, bool content, std::string_view members,
                                std::string* sse) {
  if (sse == nullptr) return;
  Event(type,
        fmt::format(R"("item_id":{},"output_index":{},{}{})", JsonString(open_->id), output_.size(),
                    content ? R"("content_index":0,)" : "", members),
        sse);
}

void ResponsesWriter::Begin(std::string* sse) {
  if (std::exchange(begun_, true) || sse == nullptr) return;
  Event("response.created", R"("response":)" + Dump(ResponseJson("in_progress")), sse);
  SayInProgress(sse);
}

void ResponsesWriter::SayInProgress(std::string* sse) {
  Event("response.in_progress", R"("response":)" + Dump(ResponseJson("in_progress")), sse);
}

void ResponsesWriter::KeepAlive(std::string* sse) {
  if (begun_) return SayInProgress(sse);
  Begin(sse);
}

void ResponsesWriter::Open(Item item, std::string* sse) {
  Close(true, sse);
  const std::string_view prefix = item.kind == Kind::kReasoning ? "rs"
                                  : item.kind == Kind::kMessage ? "msg"
                                  : item.tool.custom            ? "ctc"
                                                                : "fc";
  item.id = fmt::format("{}_{}_{}", prefix, parts_.id, output_.size());
  open_ = std::move(item);
  if (sse == nullptr) return;
  Event("response.output_item.added",
        fmt::format(R"("output_index":{},"item":{})", output_.size(),
                    Dump(ItemJson(*open_, "in_progress"))),
        sse);
  if (open_->kind == Kind::kCall) return;
  const JsonOut part = open_->kind == Kind::kMessage ? TextPart("") : ReasoningPart("");
  ItemEvent("response.content_part.added", true, R"("part":)" + Dump(part), sse);
}

void ResponsesWriter::AppendText(std::string_view text, std::string* sse) {
  open_->text += text;
  if (sse == nullptr || text.empty()) return;
  const std::string delta = R"("delta":)" + JsonString(text);
  if (open_->kind == Kind::kReasoning)
    ItemEvent("response.reasoning_text.delta", true, delta, sse);
  else if (open_->kind == Kind::kMessage)
    ItemEvent("response.output_text.delta", true, delta + R"(,"logprobs":[])", sse);
  else if (!open_->tool.custom)
    ItemEvent("response.function_call_arguments.delta", false, delta, sse);
}

// Ends the open item, if there is one.
void ResponsesWriter::Close(bool complete, std::string* sse) {
  if (!open_) return;
  const Item& item = *open_;
  JsonOut whole = ItemJson(item, complete ? "completed" : "incomplete");
  if (sse != nullptr) {
    const std::string text = R"("text":)" + JsonString(item.text);
    if (item.kind == Kind::kReasoning) {
      ItemEvent("response.reasoning_text.done", true, text, sse);
    } else if (item.kind == Kind::kMessage) {
      ItemEvent("response.output_text.done", true, text + R"(,"logprobs":[])", sse);
    } else if (item.tool.custom) {
      // Only the whole arguments tell the input.
      const std::string input = Dump(whole["input"]);
      ItemEvent("response.custom_tool_call_input.delta", false, R"("delta":)" + input, sse);
      ItemEvent("response.custom_tool_call_input.done", false, R"("input":)" + input, sse);
    } else {
      ItemEvent("response.function_call_arguments.done", false,
                fmt::format(R"("name":{},"arguments":{})", JsonString(item.tool.name),
                            JsonString(item.text)),
                sse);
    }
    if (item.kind != Kind::kCall)
      ItemEvent("response.content_part.done", true, R"("part":)" + Dump(whole["content"][0]), sse);
    Event("response.output_item.done",
          fmt::format(R"("output_index":{},"item":{})", output_.size(), Dump(whole)), sse);
  }
  output_.push_back(std::move(whole));
  open_.reset();
}

void ResponsesWriter::AddReasoning(std::string_view text, std::string* sse) {
  if (text.empty()) return;
  if (!open_ || open_->kind != Kind::kReasoning) Open({.kind = Kind::kReasoning}, sse);
  AppendText(text, sse);
}

// White space alone is a message only if no call follows it.
void ResponsesWriter::AddContent(std::string_view text, std::string* sse) {
  if (text.empty()) return;
  if (!open_ || open_->kind != Kind::kMessage) {
    held_ += text;
    if (IsBlank(held_)) return;
    Open({.kind = Kind::kMessage}, sse);
    AppendText(std::exchange(held_, {}), sse);
    return;
  }
  AppendText(text, sse);
}

void ResponsesWriter::AddCall(const ToolEvent& event, std::string* sse) {
  if (event.kind == ToolEvent::Kind::kArguments) {
    if (open_ && open_->kind == Kind::kCall) AppendText(event.text, sse);
    return;
  }
  held_.clear();
  const ResponsesTools& tools = parts_.reply.responses->tools;
  const auto known = tools.find(event.text);
  Open({.kind = Kind::kCall,
        .call = event.call,
        .call_id = CallId(event.id, parts_.id, 0, event.call),
        .tool = known == tools.end() ? ResponsesTool{event.text, "", false} : known->second},
       sse);
}

// The arguments of the open call come first: content of the same event follows them.
void ResponsesWriter::AddPiece(const ApiPiece& piece, std::string* sse) {
  AddReasoning(piece.reasoning, sse);
  size_t i = 0;
  for (; i < piece.calls.size() && piece.calls[i].kind == ToolEvent::Kind::kArguments; ++i)
    AddCall(piece.calls[i], sse);
  AddContent(piece.content, sse);
  for (; i < piece.calls.size(); ++i) AddCall(piece.calls[i], sse);
}

void ResponsesWriter::Add(const AnswerEvent& next, std::string* sse) {
  Begin(sse);
  AddPiece(next.piece, sse);
}

// Ends the last item, which is the one that a limit has cut. An answer that says nothing is an
// empty message.
void ResponsesWriter::CloseLast(const ApiAnswer& answer, std::string* sse) {
  const ApiChoice& choice = answer.choice(0);
  const bool whole = choice.finish == FinishReason::kStop;
  const bool calls = open_ && open_->kind == Kind::kCall;
  const bool thought = open_ && open_->kind == Kind::kReasoning;
  if (!calls && (!held_.empty() || (output_.empty() && !open_) || (thought && whole))) {
    Open({.kind = Kind::kMessage}, sse);
    AppendText(std::exchange(held_, {}), sse);
  }
  Close(calls && open_ ? open_->call < choice.ended_calls : whole, sse);
}

void ResponsesWriter::Finish(const ApiAnswer& answer, std::string* sse) {
  CloseLast(answer, sse);
  const JsonOut response = EndJson(answer);
  Event(response["status"] == "completed" ? "response.completed" : "response.incomplete",
        R"("response":)" + Dump(response), sse);
}

void ResponsesWriter::Fail(const Error& error, const ApiAnswer& answer, std::string* sse) {
  Begin(sse);
  Close(false, sse);
  JsonOut response = ResponseJson("failed");
  response["error"] = {{"code", ErrorCode(error)}, {"message", error.message}};
  response["usage"] = ResponsesUsage(answer.usage());
  Event("response.failed", R"("response":)" + Dump(response), sse);
}

std::string ResponsesWriter::Body(const ApiAnswer& answer) const {
  ApiMessage message = answer.Message(0);
  ApiPiece all{message.reasoning.value_or(""), std::move(message.content), {}};
  for (size_t i = 0; i < message.calls.size(); ++i) {
    ApiCall& call = message.calls[i];
    all.calls.push_back({ToolEvent::Kind::kCallBegin, i, call.name, call.id});
    all.calls.push_back({ToolEvent::Kind::kArguments, i, std::move(call.arguments)});
  }
  ResponsesWriter whole(parts_);
  whole.AddPiece(all, nullptr);
  whole.CloseLast(answer, nullptr);
  return Dump(whole.EndJson(answer));
}

}  // namespace latte
