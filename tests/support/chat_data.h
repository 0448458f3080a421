// Reads the conversations of tests/data/chat. For tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/chat/template_format.h"
#include "src/jinja/json.h"

namespace latte::testing_support {

inline std::string ReadChatData(const std::string& name) {
  return ReadFile(std::string(LATTE_SOURCE_DIR) + "/tests/data/chat/" + name, 1 << 24).value();
}

inline jinja::Value ReadChatJson(const std::string& name) {
  return jinja::ParseJson(ReadChatData(name), name).value();
}

inline std::optional<std::string> ChatText(const jinja::Dict& dict, std::string_view key) {
  const jinja::Value* value = dict.Find(key);
  if (!value || !value->Is(jinja::Kind::kString)) return {};
  return value->bytes();
}

// The messages of a list in the form of the OpenAI API.
inline std::vector<ChatMessage> ReadMessages(const jinja::Value& list) {
  std::vector<ChatMessage> out;
  for (const jinja::Value& entry : list.list().items) {
    const jinja::Dict& dict = entry.dict();
    ChatMessage message{*ChatText(dict, "role"),
                        ChatText(dict, "content"),
                        ChatText(dict, "reasoning_content"),
                        {},
                        ChatText(dict, "tool_call_id"),
                        ChatText(dict, "name")};
    if (const jinja::Value* calls = dict.Find("tool_calls"))
      for (const jinja::Value& call : calls->list().items) {
        const jinja::Dict& function = call.dict().Find("function")->dict();
        message.tool_calls.push_back({*ChatText(call.dict(), "id"), *ChatText(function, "name"),
                                      *ChatText(function, "arguments")});
      }
    out.push_back(std::move(message));
  }
  return out;
}

inline std::string ToJsonText(const jinja::Value& value) {
  jinja::Budget budget{jinja::Limits()};
  return jinja::DumpJson(value, {}, &budget).value();
}

inline ChatModel WithChatTemplate(std::string source) {
  ChatModel model;
  model.chat_template = std::move(source);
  model.bos_token = "<｜begin▁of▁sentence｜>";
  model.eos_token = "<｜end▁of▁sentence｜>";
  return model;
}

}  // namespace latte::testing_support
