#include "src/chat/template_format.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/chat/encoders.h"
#include "src/jinja/json.h"

namespace latte {
namespace {

using jinja::Dict;
using jinja::Text;
using jinja::Value;

Value UserString(const std::string& text) { return Value::String(jinja::UserText(text)); }
Text Key(std::string_view key) { return Text(std::string(key), true); }

Result<Value> CallValue(const ToolCall& call, bool arguments_are_text) {
  Value arguments = UserString(call.arguments);
  if (!arguments_are_text) {
    LATTE_ASSIGN_OR_RETURN(arguments, ParseArguments(call));
  }
  LATTE_ASSIGN_OR_RETURN(Value function, jinja::MakeDict({{Key("name"), UserString(call.name)},
                                                          {Key("arguments"), arguments}}));
  return jinja::MakeDict({{Key("id"), UserString(call.id)},
                          {Key("type"), Value::String("function")},
                          {Key("function"), std::move(function)}});
}

// A message in the form that transformers passes to templates: members that are not set are absent.
Result<Value> MessageValue(const ChatMessage& message, bool arguments_are_text) {
  std::vector<Dict::Entry> entries;
  entries.push_back({Key("role"), UserString(message.role)});
  entries.push_back({Key("content"), message.content ? UserString(*message.content) : Value()});
  if (message.reasoning) {
    // Templates use either name.
    entries.push_back({Key("reasoning_content"), UserString(*message.reasoning)});
  }
  if (!message.tool_calls.empty()) {
    std::vector<Value> calls;
    for (const ToolCall& call : message.tool_calls) {
      LATTE_ASSIGN_OR_RETURN(Value value, CallValue(call, arguments_are_text));
      calls.push_back(std::move(value));
    }
    LATTE_ASSIGN_OR_RETURN(Value list, jinja::MakeList(std::move(calls), false, true));
    entries.push_back({Key("tool_calls"), std::move(list)});
  }
  if (message.tool_call_id)
    entries.push_back({Key("tool_call_id"), UserString(*message.tool_call_id)});
  if (message.name) entries.push_back({Key("name"), UserString(*message.name)});
  if (message.prefix) entries.push_back({Key("prefix"), Value::Bool(true)});
  return jinja::MakeDict(std::move(entries));
}

bool Has(const ChatModel& model, std::string_view token) {
  return model.has_token && model.has_token(token);
}

}  // namespace

std::string_view ChatFormatName(ChatFormat format) {
  constexpr std::string_view kNames[] = {"template",      "deepseek_v2", "deepseek_v2.5",
                                         "deepseek_v3",   "deepseek_r1", "deepseek_v3.1",
                                         "deepseek_v3.2", "kimi_k2"};
  return kNames[static_cast<size_t>(format)];
}

Result<ChatFormat> DetectChatFormat(const ChatModel& model) {
  if (!model.chat_template.empty()) return ChatFormat::kTemplate;
  const std::string& type = model.model_type;
  if (type == "kimi_k2" || Has(model, "<|im_middle|>")) return ChatFormat::kKimiK2;
  if (type == "deepseek_v32") return ChatFormat::kDeepseekV32;
  if (type == "deepseek_v3" && Has(model, "<｜search▁begin｜>")) return ChatFormat::kDeepseekV31;
  if (type == "deepseek_v3" && Has(model, "<think>")) return ChatFormat::kDeepseekR1;
  if (type == "deepseek_v3") return ChatFormat::kDeepseekV3;
  if (type == "deepseek_v2")
    return Has(model, "<｜User｜>") ? ChatFormat::kDeepseekV25 : ChatFormat::kDeepseekV2;
  return Unsupported(
      fmt::format("the checkpoint has no chat template, and none is known for model type '{}'; "
                  "put a chat_template.jinja next to its tokenizer.json",
                  type));
}

Result<ChatRenderer> ChatRenderer::Create(const ChatModel& model) {
  LATTE_ASSIGN_OR_RETURN(const ChatFormat format, DetectChatFormat(model));
  return Create(format, model);
}

Result<ChatRenderer> ChatRenderer::Create(ChatFormat format, const ChatModel& model) {
  ChatRenderer out(format, model);
  if (format == ChatFormat::kTemplate) {
    LATTE_ASSIGN_OR_RETURN(out.template_, jinja::Template::Parse(model.chat_template));
    out.call_form_ = out.FindCallForm();
  }
  return out;
}

constexpr std::string_view kSampleTool = "latte_tool";
constexpr std::string_view kSampleArguments = R"({"latte": 1})";

std::optional<std::string> ChatRenderer::RenderSampleCall(const CallForm& form) const {
  ChatMessage user;
  user.role = "user";
  user.content = "?";
  ChatMessage call;
  call.role = "assistant";
  call.tool_calls = {
      {"functions.latte_tool:0", std::string(kSampleTool), std::string(kSampleArguments)}};
  if (form.silence == CallForm::Silence::kText) call.content = "";
  const Result<Text> text = RenderTemplate(std::vector{user, call}, {}, form.arguments_are_text);
  if (!text) return std::nullopt;
  return text->bytes();
}

// Some templates join a call's arguments to text; others iterate over them as a mapping or write
// them with `tojson`, which would quote text a second time. A sample conversation shows which form
// a template needs, and how it writes a call without text.
CallForm ChatRenderer::FindCallForm() const {
  const auto has = [](const std::optional<std::string>& text, std::string_view part) {
    return text && text->find(part) != std::string::npos;
  };
  using Silence = CallForm::Silence;
  const auto shows = [&](Silence silence) {
    for (const bool as_text : {true, false}) {
      const auto text = RenderSampleCall({as_text, silence});
      const bool says_none = silence == Silence::kNull && has(text, "None") &&
                             !has(RenderSampleCall({as_text, Silence::kText}), "None");
      if (has(text, kSampleTool) && !says_none) return true;
    }
    return false;
  };
  CallForm form;
  const bool with_null = shows(Silence::kNull);
  if (with_null != shows(Silence::kText))
    form.silence = with_null ? Silence::kNull : Silence::kText;
  const auto as_text = RenderSampleCall(form);
  if (has(as_text, kSampleArguments)) return form;
  form.arguments_are_text = false;
  const auto as_object = RenderSampleCall(form);
  form.arguments_are_text = !as_object || as_text == as_object;
  return form;
}

std::vector<ChatMessage> ChatRenderer::WithCallsShown(std::span<const ChatMessage> messages) const {
  using Silence = CallForm::Silence;
  std::vector<ChatMessage> out(messages.begin(), messages.end());
  for (ChatMessage& message : out) {
    const bool silent = !message.content || message.content->empty();
    if (!silent || message.tool_calls.empty()) continue;
    if (call_form_.silence == Silence::kNull) message.content.reset();
    if (call_form_.silence == Silence::kText) message.content = "";
  }
  return out;
}

Result<Text> ChatRenderer::RenderTemplate(std::span<const ChatMessage> messages,
                                          const ChatOptions& options,
                                          bool arguments_are_text) const {
  std::vector<Value> list;
  for (size_t i = 0; i < messages.size(); ++i) {
    Result<Value> value = MessageValue(messages[i], arguments_are_text);
    if (!value) return BadMessage(format_, i, value.error().message);
    list.push_back(*std::move(value));
  }
  LATTE_ASSIGN_OR_RETURN(Value history, jinja::MakeList(std::move(list), false, true));
  Value tools;
  if (options.tools) {
    LATTE_ASSIGN_OR_RETURN(tools, jinja::ParseJson(*options.tools, "tools"));
  }
  std::vector<Dict::Entry> entries;
  if (options.variables) {
    LATTE_ASSIGN_OR_RETURN(const Value given,
                           jinja::ParseJson(*options.variables, "chat_template_kwargs"));
    if (!given.Is(jinja::Kind::kDict))
      return InvalidArgument("chat_template_kwargs: expected an object");
    entries = given.dict().entries;
  }
  if (options.thinking)
    for (const char* name : {"thinking", "enable_thinking"})
      entries.push_back({Key(name), Value::Bool(*options.thinking)});
  entries.push_back({Key("messages"), std::move(history)});
  entries.push_back({Key("tools"), std::move(tools)});
  entries.push_back({Key("documents"), Value()});
  entries.push_back({Key("add_generation_prompt"), Value::Bool(options.add_generation_prompt)});
  entries.push_back({Key("bos_token"), Value::String(model_.bos_token)});
  entries.push_back({Key("eos_token"), Value::String(model_.eos_token)});
  LATTE_ASSIGN_OR_RETURN(const Value variables, jinja::MakeDict(std::move(entries)));
  return template_->Render(variables, options.render);
}

Result<std::vector<TextPiece>> ChatRenderer::Render(std::span<const ChatMessage> messages,
                                                    const ChatOptions& options) const {
  LATTE_ASSIGN_OR_RETURN(const Text text,
                         format_ == ChatFormat::kTemplate
                             ? RenderTemplate(messages, options, call_form_.arguments_are_text)
                             : EncodeChat(format_, messages, options));
  std::vector<TextPiece> pieces;
  size_t begin = 0;
  for (const Text::Run& run : text.runs()) {
    pieces.push_back({text.bytes().substr(begin, run.end - begin), run.from_template});
    begin = run.end;
  }
  return pieces;
}

std::string JoinPieces(std::span<const TextPiece> pieces) {
  std::string out;
  for (const TextPiece& piece : pieces) out += piece.text;
  return out;
}

}  // namespace latte
