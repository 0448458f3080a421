#include "src/api/common/conversation.h"

#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/engine/request/prompt_too_long.h"

namespace latte {
namespace {

// Errors of chat formats count messages: "chat format F: message 2: …". Names the field that the
// message comes from.
Error NamePlace(Error error, const std::vector<std::string>& places) {
  constexpr std::string_view kMessage = ": message ";
  const size_t at = error.message.find(kMessage);
  if (at == std::string::npos) return error;
  size_t index = 0;
  const char* const end = error.message.data() + error.message.size();
  const auto parsed = std::from_chars(error.message.data() + at + kMessage.size(), end, index);
  if (parsed.ec != std::errc() || index >= places.size()) return error;
  error.message = places[index] + ": " + error.message;
  return error;
}

Status CheckMessageCount(size_t found, std::string_view where) {
  if (found <= kMaxMessages) return {};
  return InvalidArgument(
      fmt::format("{}: expected at most {} messages, found {}", where, kMaxMessages, found));
}

}  // namespace

Status CheckMessageList(const Json& list) {
  if (list.is_array() && list.size() > 0) return CheckMessageCount(list.size(), list.path());
  return InvalidArgument(list.path() + ": expected an array of at least one message");
}

Request DefaultSettings(const ApiModel& model) {
  Request out;
  model.defaults.ApplyTo(&out.sampling);
  out.sampling.seed = model.new_seed ? model.new_seed() : model.seed;
  return out;
}

Status AddConversation(const Conversation& conversation, const ApiModel& model,
                       const ApiRules& rules, ApiRequest* out) {
  if (!model.chat) return tl::unexpected(model.chat.error());
  LATTE_RETURN_IF_ERROR(CheckMessageCount(conversation.messages.size(), "messages"));
  const ApiTools& tools = conversation.tools;
  LATTE_ASSIGN_OR_RETURN(ChatOptions options,
                         ReasoningOptions(conversation.reasoning, *model.chat, &out->notes));
  LATTE_RETURN_IF_ERROR(CheckTools(tools, *model.chat));
  if (tools.active()) options.tools = tools.json;
  options.add_generation_prompt = conversation.opens_answer;
  options.check_size = [&](size_t bytes) {
    return CheckTextFits(bytes, model.tokenizer.max_token_bytes(), rules.max_model_len);
  };
  std::vector<std::string> places;
  for (size_t i = 0; i < conversation.messages.size(); ++i)
    places.push_back(i < conversation.places.size() ? conversation.places[i]
                                                    : fmt::format("messages.{}", i));
  Result<ArrangedChat> chat = model.chat->Arrange(conversation.messages);
  if (!chat) return tl::unexpected(NamePlace(std::move(chat).error(), places));
  std::vector<std::string> arranged;
  for (const size_t place : chat->places) arranged.push_back(places[place]);
  Result<ChatPrompt> prompt = model.chat->Build(chat->messages, options);
  if (!prompt) return tl::unexpected(NamePlace(std::move(prompt).error(), arranged));
  if (prompt->ids.empty()) return InvalidArgument("messages: the chat format made an empty prompt");
  Request& request = out->requests.emplace_back(conversation.settings);
  request.tokens = std::move(prompt->ids);
  request.reasoning = prompt->in_thought ? "begun" : "possible";
  if (tools.active()) {
    request.keep_special = request.keep_special || model.chat->hides_calls();
    out->reply.calls = model.chat->tool_format();
    out->reply.functions = tools.known;
    request.call_format = Name(*out->reply.calls);
    out->reply.parallel_calls = tools.parallel;
  }
  LATTE_RETURN_IF_ERROR(
      SetGrammar(conversation.format, tools, &*model.chat, prompt->in_thought, &request));
  out->reply.prompts.push_back({.first_token = request.tokens.front()});
  out->reply.in_thought = prompt->in_thought;
  out->notes.insert(out->notes.end(), prompt->notes.begin(), prompt->notes.end());
  StopConditions& stop = request.stop;
  if (!stop.ignore_eos)
    for (const int64_t token : model.chat->stop_tokens())
      stop.tokens.push_back(static_cast<int32_t>(token));
  return {};
}

}  // namespace latte
