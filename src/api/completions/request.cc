#include "src/api/completions/request.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/conversation.h"
#include "src/api/common/fields.h"
#include "src/api/completions/messages.h"
#include "src/engine/request/prompt_too_long.h"

namespace latte {
namespace {

// A chat continues to the end of the context, as the API says.
constexpr int64_t kCompletionTokens = 16;
Status SetMaxTokens(ApiEndpoint endpoint, const ApiFields& fields, StopConditions* stop) {
  if (fields.max_tokens && fields.max_completion_tokens &&
      *fields.max_tokens != *fields.max_completion_tokens)
    return InvalidArgument(
        fmt::format("max_tokens, max_completion_tokens: both mean the same, but {} and {} differ; "
                    "give only one of them",
                    *fields.max_tokens, *fields.max_completion_tokens));
  stop->max_tokens = fields.max_tokens              ? *fields.max_tokens
                     : fields.max_completion_tokens ? *fields.max_completion_tokens
                     : endpoint == ApiEndpoint::kChat
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
                 const ApiRules& rules, ApiRequest* out) {
  Request request = settings;
  ApiPrompt shown;
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
Status SetPrompts(const ApiFields& fields, const Tokenizer& tokenizer, const ApiRules& rules,
                  ApiRequest* out) {
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
Status CheckPromptLogprobs(const ApiRequest& request, const ApiRules& rules) {
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

Status SetMessages(const ApiFields& fields, const ApiModel& model, const ApiRules& rules,
                   ApiRequest* out) {
  if (!fields.messages) return InvalidArgument("messages: this field is missing");
  if (!model.chat) return tl::unexpected(model.chat.error());
  Conversation conversation{.settings = fields.request,
                            .reasoning = fields.reasoning,
                            .tools = fields.tools,
                            .format = fields.format};
  LATTE_ASSIGN_OR_RETURN(conversation.messages, ParseOpenAiMessages(*fields.messages));
  return AddConversation(conversation, model, rules, out);
}

Status SetLogprobs(ApiFields* fields, ApiReply* reply) {
  reply->logprobs = fields->logprobs.value_or(-1);
  if (reply->endpoint == ApiEndpoint::kChat) {
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

Status CheckRules(const ApiReply& reply, const ApiRules& rules) {
  if (reply.n > rules.max_n)
    return InvalidArgument(
        fmt::format("n: expected at most {} answers, found {}", rules.max_n, reply.n));
  const int most = std::max(reply.logprobs, reply.prompt_logprobs);
  if (most > rules.max_logprobs)
    return InvalidArgument(
        fmt::format("{}: expected at most {} alternatives, found {}",
                    reply.endpoint == ApiEndpoint::kChat ? "top_logprobs" : "logprobs",
                    rules.max_logprobs, most));
  return {};
}

}  // namespace

Result<ApiRequest> ParseCompletionRequest(ApiEndpoint endpoint, const Json& body,
                                          const ApiModel& model, const ApiRules& rules) {
  ApiFields fields{.request = DefaultSettings(model)};
  LATTE_RETURN_IF_ERROR(ReadApiFields(endpoint, body, rules.other_fields, &fields));
  LATTE_RETURN_IF_ERROR(SetMaxTokens(endpoint, fields, &fields.request.stop));
  ApiRequest out;
  ApiReply& reply = out.reply;
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
  LATTE_RETURN_IF_ERROR(endpoint == ApiEndpoint::kChat
                            ? SetMessages(fields, model, rules, &out)
                            : SetPrompts(fields, model.tokenizer, rules, &out));
  LATTE_RETURN_IF_ERROR(CheckPromptLogprobs(out, rules));
  return out;
}

}  // namespace latte
