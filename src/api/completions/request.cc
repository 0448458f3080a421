#include "src/api/common/request.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/model_path.h"
#include "src/engine/request/prompt_too_long.h"
#include "src/api/messages/request.h"
#include "src/api/common/conversation.h"
#include "src/api/common/fields.h"
#include "src/api/completions/messages.h"
#include "src/api/responses/request.h"

namespace latte {
namespace {

// A chat continues to the end of the context, as the API says.
constexpr int64_t kCompletionTokens = 16;
// The same in the APIs of OpenAI and Anthropic.
constexpr double kApiTemperature = 1;

Status SetMaxTokens(OpenAiEndpoint endpoint, const OpenAiFields& fields, StopConditions* stop) {
  if (fields.max_tokens && fields.max_completion_tokens &&
      *fields.max_tokens != *fields.max_completion_tokens)
    return InvalidArgument(
        fmt::format("max_tokens, max_completion_tokens: both mean the same, but {} and {} differ; "
                    "give only one of them",
                    *fields.max_tokens, *fields.max_completion_tokens));
  stop->max_tokens = fields.max_tokens              ? *fields.max_tokens
                     : fields.max_completion_tokens ? *fields.max_completion_tokens
                     : endpoint == OpenAiEndpoint::kChat
                         ? kToTheEnd
                         : std::max(kCompletionTokens, stop->min_tokens);
  return {};
}

Result<std::vector<int32_t>> PromptIds(const Json& prompt) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < prompt.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const int64_t id, prompt.At(i).AsInt());
    if (id < 0 || id > INT32_MAX)
      return InvalidArgument(
          fmt::format("{}: expected a token id of 0 or more, found {}", prompt.At(i).path(), id));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

// Sets one prompt: a text or an array of ids.
Status AddPrompt(const Json& prompt, const Tokenizer& tokenizer, const Request& settings,
                 const OpenAiRules& rules, OpenAiRequest* out) {
  Request request = settings;
  OpenAiPrompt shown;
  if (prompt.is_array()) {
    LATTE_ASSIGN_OR_RETURN(request.tokens, PromptIds(prompt));
  } else if (prompt.is_string()) {
    LATTE_ASSIGN_OR_RETURN(request.prompt, prompt.AsString());
    LATTE_RETURN_IF_ERROR(
        CheckTextFits(request.prompt.size(), tokenizer.max_token_bytes(), rules.max_model_len));
    shown.first_is_bos = tokenizer.adds_bos();
    LATTE_ASSIGN_OR_RETURN(request.tokens,
                           tokenizer.Encode(request.prompt, {.add_bos = tokenizer.adds_bos()}));
  } else {
    return InvalidArgument(prompt.path() + ": expected a string or an array of token ids");
  }
  if (request.tokens.empty())
    return InvalidArgument(prompt.path() + ": expected at least one token, found none");
  shown.first_token = request.tokens.front();
  out->requests.push_back(std::move(request));
  out->reply.prompts.push_back(shown);
  return {};
}

// A list of prompts, or one: an array of numbers is one.
Status SetPrompts(const OpenAiFields& fields, const Tokenizer& tokenizer, const OpenAiRules& rules,
                  OpenAiRequest* out) {
  if (!fields.prompt) return InvalidArgument("prompt: this field is missing");
  const Json& prompt = *fields.prompt;
  Request settings = fields.request;
  LATTE_RETURN_IF_ERROR(SetGrammar(fields.format, {}, nullptr, false, &settings));
  const bool is_list = prompt.is_array() && prompt.size() > 0 &&
                       (prompt.At(0).is_string() || prompt.At(0).is_array());
  if (!is_list) return AddPrompt(prompt, tokenizer, settings, rules, out);
  if (static_cast<int64_t>(prompt.size()) > rules.max_prompts)
    return InvalidArgument(fmt::format("{}: expected at most {} prompts, found {}", prompt.path(),
                                       rules.max_prompts, prompt.size()));
  if (static_cast<int64_t>(prompt.size()) * out->reply.n > rules.max_answers)
    return InvalidArgument(
        fmt::format("{}: expected at most {} answers in all, found {} prompts with n = {}",
                    prompt.path(), rules.max_answers, prompt.size(), out->reply.n));
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt.At(i).is_string() != prompt.At(0).is_string())
      return InvalidArgument(
          fmt::format("{}: expected {} like the prompts before it", prompt.At(i).path(),
                      prompt.At(0).is_string() ? "a string" : "an array of token ids"));
    LATTE_RETURN_IF_ERROR(AddPrompt(prompt.At(i), tokenizer, settings, rules, out));
  }
  return {};
}

// A prompt of many tokens with many alternatives, for each of n answers, would fill the memory.
Status CheckPromptLogprobs(const OpenAiRequest& request, const OpenAiRules& rules) {
  constexpr int64_t kBytes = 64;  // of an alternative, usually
  int64_t listed = 0;
  for (const Request& prompt : request.requests)
    listed += static_cast<int64_t>(prompt.tokens.size()) * (prompt.prompt_logprobs + 1) * prompt.n;
  const int64_t most = rules.max_answer_bytes / kBytes;
  if (listed <= most) return {};
  return InvalidArgument(fmt::format(
      "{}: expected at most {} alternatives for all tokens of the prompts together, found {}",
      request.reply.prompt_logprobs >= 0 ? "prompt_logprobs" : "echo", most, listed));
}

Status SetMessages(const OpenAiFields& fields, const OpenAiModel& model, const OpenAiRules& rules,
                   OpenAiRequest* out) {
  if (!fields.messages) return InvalidArgument("messages: this field is missing");
  if (!model.chat) return tl::unexpected(model.chat.error());
  Conversation conversation{.settings = fields.request,
                            .reasoning = fields.reasoning,
                            .tools = fields.tools,
                            .format = fields.format};
  LATTE_ASSIGN_OR_RETURN(conversation.messages, ParseOpenAiMessages(*fields.messages));
  return AddConversation(conversation, model, rules, out);
}

Status SetLogprobs(OpenAiFields* fields, OpenAiReply* reply) {
  reply->logprobs = fields->logprobs.value_or(-1);
  if (reply->endpoint == OpenAiEndpoint::kChat) {
    if (fields->logprobs.value_or(0) > 0 && !fields->chat_logprobs)
      return InvalidArgument("top_logprobs: expected logprobs to be true");
    reply->logprobs = fields->chat_logprobs ? fields->logprobs.value_or(0) : -1;
  }
  Request& request = fields->request;
  reply->prompt_logprobs = request.prompt_logprobs;
  request.logprobs = reply->logprobs;
  // An echoed prompt has logprobs like the answer.
  if (reply->echo) request.prompt_logprobs = std::max(reply->prompt_logprobs, reply->logprobs);
  return {};
}

Status CheckRules(const OpenAiReply& reply, const OpenAiRules& rules) {
  if (reply.n > rules.max_n)
    return InvalidArgument(
        fmt::format("n: expected at most {} answers, found {}", rules.max_n, reply.n));
  const int most = std::max(reply.logprobs, reply.prompt_logprobs);
  if (most > rules.max_logprobs)
    return InvalidArgument(
        fmt::format("{}: expected at most {} alternatives, found {}",
                    reply.endpoint == OpenAiEndpoint::kChat ? "top_logprobs" : "logprobs",
                    rules.max_logprobs, most));
  return {};
}

Result<OpenAiRequest> ParseCompletion(OpenAiEndpoint endpoint, const Json& body,
                                      const OpenAiModel& model, const OpenAiRules& rules) {
  OpenAiFields fields{.request = DefaultSettings(model)};
  LATTE_RETURN_IF_ERROR(ReadOpenAiFields(endpoint, body, rules.other_fields, &fields));
  LATTE_RETURN_IF_ERROR(SetMaxTokens(endpoint, fields, &fields.request.stop));
  OpenAiRequest out;
  OpenAiReply& reply = out.reply;
  reply.endpoint = endpoint;
  reply.model = fields.model.empty() ? model.name : fields.model;
  reply.fingerprint = model.fingerprint;
  reply.stream = fields.stream;
  reply.include_usage = fields.include_usage;
  reply.continuous_usage = fields.include_usage && fields.continuous_usage;
  reply.n = fields.request.n;
  reply.echo = fields.request.echo;
  reply.keep_special = fields.request.keep_special;
  reply.prompts.clear();
  out.ignored = fields.ignored;
  LATTE_RETURN_IF_ERROR(SetLogprobs(&fields, &reply));
  LATTE_RETURN_IF_ERROR(CheckRules(reply, rules));
  LATTE_RETURN_IF_ERROR(fields.request.Validate());
  LATTE_RETURN_IF_ERROR(endpoint == OpenAiEndpoint::kChat
                            ? SetMessages(fields, model, rules, &out)
                            : SetPrompts(fields, model.tokenizer, rules, &out));
  LATTE_RETURN_IF_ERROR(CheckPromptLogprobs(out, rules));
  return out;
}

Result<OpenAiRequest> ParseAnyBody(OpenAiEndpoint endpoint, const Json& body,
                                   const OpenAiModel& model, const OpenAiRules& rules) {
  switch (endpoint) {
    case OpenAiEndpoint::kChat:
    case OpenAiEndpoint::kCompletions:
      break;
    case OpenAiEndpoint::kResponses:
      return ParseResponsesRequest(body, model, rules);
    case OpenAiEndpoint::kMessages:
      return ParseAnthropicRequest(body, model, rules);
  }
  return ParseCompletion(endpoint, body, model, rules);
}

// A request that asks to go before others gets the priority that the operator allows.
void LimitPriority(const OpenAiRules& rules, OpenAiRequest* request) {
  const int asked = request->requests.front().priority;
  if (asked >= rules.min_priority) return;
  for (Request& prompt : request->requests) prompt.priority = rules.min_priority;
  request->notes.push_back(
      fmt::format("priority: values below --min-priority {} count as it", rules.min_priority));
}

struct Address {
  OpenAiEndpoint endpoint;
  std::string_view url;
};
constexpr auto kAddresses = std::to_array<Address>({
    {OpenAiEndpoint::kChat, "/v1/chat/completions"},
    {OpenAiEndpoint::kCompletions, "/v1/completions"},
    {OpenAiEndpoint::kResponses, "/v1/responses"},
    {OpenAiEndpoint::kMessages, "/v1/messages"},
});

}  // namespace

std::string_view Url(OpenAiEndpoint endpoint) {
  return std::find_if(kAddresses.begin(), kAddresses.end(),
                      [&](const Address& address) { return address.endpoint == endpoint; })
      ->url;
}

std::optional<OpenAiEndpoint> FindEndpoint(std::string_view url) {
  for (const Address& address : kAddresses)
    if (url == address.url) return address.endpoint;
  return std::nullopt;
}

Result<OpenAiModel> OpenAiModel::Create(const std::string& name, const ModelFiles& files) {
  LATTE_ASSIGN_OR_RETURN(const GenerationDefaults defaults, LoadGenerationDefaults(files.dir));
  OpenAiModel out{name, files.tokenizer, ChatPromptBuilder::Create(files.tokenizer, files.config),
                  defaults};
  out.fingerprint = fmt::format("fp_{:010x}", files.config.text_hash & 0xFFFFFFFFFF);
  return out;
}

void OpenAiModel::UseApiDefaults() {
  if (!defaults.recommended) defaults.temperature = kApiTemperature;
}

Status OpenAiModel::UseChatTemplate(const std::string& text, const ModelConfig& config) {
  LATTE_ASSIGN_OR_RETURN(ChatPromptBuilder built,
                         ChatPromptBuilder::Create(tokenizer, config, text));
  chat = std::move(built);
  return {};
}

Result<OpenAiRequest> ParseOpenAiRequest(OpenAiEndpoint endpoint, const Json& body,
                                         const OpenAiModel& model, const OpenAiRules& rules) {
  Result<OpenAiRequest> out = ParseAnyBody(endpoint, body, model, rules);
  if (out) {
    out->reply.max_answer_bytes = rules.max_answer_bytes;
    LimitPriority(rules, &*out);
    return out;
  }
  Error error = std::move(out).error();
  // For the sender of the request, a wrong type is not a corrupt file, and a conversation that
  // exceeds a template's limits is not a temporary lack of memory.
  if (error.code == Code::kCorrupt || error.code == Code::kExhausted)
    error.code = Code::kInvalidArgument;
  return tl::unexpected(std::move(error));
}

Result<OpenAiRequest> ParseOpenAiBody(OpenAiEndpoint endpoint, std::string_view body,
                                      const OpenAiModel& model, const OpenAiRules& rules) {
  return CatchExhaustion([&]() -> Result<OpenAiRequest> {
    // The ids of a prompt are elements: no context has more.
    constexpr JsonLimits kLimits = {.max_depth = 64, .max_elements = 2'000'000};
    const Result<Json> json = Json::Parse(body, "body", kLimits);
    if (!json) return InvalidArgument(json.error().message);
    return ParseOpenAiRequest(endpoint, *json, model, rules);
  });
}

}  // namespace latte
