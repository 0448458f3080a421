#include "src/api/messages/request.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/conversation.h"
#include "src/api/messages/fields.h"
#include "src/api/messages/messages.h"
#include "src/base/json_out.h"
#include "src/base/limits/out_of_memory.h"

namespace latte {
namespace {

// For Anthropic, reasoning is a wish: clients send it for any model.
ApiReasoning Reasoning(const AnthropicFields& fields, const ChatPromptBuilder& chat,
                       std::vector<std::string>* notes) {
  constexpr std::string_view kEffort = "reasoning_effort";
  ApiReasoning out;
  const std::optional<bool> thinking = fields.reasoning.thinking;
  if (chat.has_thinking_switch()) {
    out.thinking = thinking;
    out.thinking_path = "thinking";
  } else if (thinking && *thinking != chat.thinks_by_itself()) {
    notes->emplace_back("thinking: the chat format has no switch for reasoning");
  }
  if (!fields.effort) return out;
  if (chat.chat_template().find(kEffort) != std::string::npos)
    out.variables[std::string(kEffort)] = *fields.effort;
  else
    notes->emplace_back("output_config.effort: the chat format has no choice of it");
  return out;
}

// An answer begins a message of its own; the API would continue the last one.
Status CheckLast(const AnthropicConversation& conversation) {
  if (conversation.messages.back().role != "assistant") return {};
  return Unsupported(conversation.places.back() +
                     ": continuing a message of the assistant is not supported; let the last "
                     "message be the user's");
}

// `count`: only the prompt is of interest.
Result<ApiRequest> ParseMessages(const Json& body, const ApiModel& model, const ApiRules& rules,
                                 bool count) {
  AnthropicFields fields{.settings = DefaultSettings(model)};
  LATTE_RETURN_IF_ERROR(ReadAnthropicFields(body, &fields));
  if (!fields.messages) return InvalidArgument("messages: this field is missing");
  if (!count && !fields.has_max_tokens) return InvalidArgument("max_tokens: this field is missing");
  LATTE_RETURN_IF_ERROR(fields.settings.Validate());
  if (!model.chat) return tl::unexpected(model.chat.error());
  ApiRequest out;
  out.reply.endpoint = ApiEndpoint::kMessages;
  out.reply.model = fields.model.empty() ? model.name : fields.model;
  out.reply.stream = fields.stream;
  out.reply.prompts.clear();
  out.ignored = std::move(fields.ignored);
  LATTE_ASSIGN_OR_RETURN(AnthropicConversation parsed,
                         ParseAnthropicMessages(fields.system, *fields.messages));
  if (!count) LATTE_RETURN_IF_ERROR(CheckLast(parsed));
  out.notes = std::move(parsed.notes);
  const bool ends_with_answer = parsed.messages.back().role == "assistant";
  Conversation conversation{.settings = std::move(fields.settings),
                            .messages = std::move(parsed.messages),
                            .places = std::move(parsed.places),
                            .reasoning = Reasoning(fields, *model.chat, &out.notes),
                            .tools = std::move(fields.tools),
                            .format = std::move(fields.format),
                            .opens_answer = !ends_with_answer};
  LATTE_RETURN_IF_ERROR(AddConversation(conversation, model, rules, &out));
  return out;
}

}  // namespace

Result<ApiRequest> ParseAnthropicRequest(const Json& body, const ApiModel& model,
                                         const ApiRules& rules) {
  return ParseMessages(body, model, rules, /*count=*/false);
}

Result<std::string> CountTokensBody(std::string_view body, const std::vector<std::string>& names,
                                    const ApiModel& model) {
  return CatchExhaustion([&]() -> Result<std::string> {
    constexpr JsonLimits kLimits = {.max_depth = 64, .max_elements = 2'000'000};
    const Result<Json> json = Json::Parse(body, "body", kLimits);
    if (!json) return InvalidArgument(json.error().message);
    const Result<ApiRequest> parsed = ParseMessages(*json, model, {}, /*count=*/true);
    if (!parsed) return InvalidArgument(parsed.error().message);
    const ApiRequest& request = *parsed;
    if (std::find(names.begin(), names.end(), request.reply.model) == names.end())
      return NotFound(fmt::format("model: expected '{}', found '{}'", fmt::join(names, "' or '"),
                                  request.reply.model));
    return Dump({{"input_tokens", request.requests.front().tokens.size()}});
  });
}

}  // namespace latte
