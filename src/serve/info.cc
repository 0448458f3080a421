#include "src/serve/info.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/json_text.h"
#include "src/api/request.h"
#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/base/limits/out_of_memory.h"

namespace latte {
namespace {

constexpr JsonLimits kBodyLimits = {.max_depth = 64, .max_elements = 2'000'000};

JsonOut ModelJson(const ServedModel& served, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", served.created},
          {"owned_by", "latte"},
          {"root", served.names.front()},
          {"parent", nullptr},
          {"max_model_len", served.max_model_len}};
}

// A wrong type in a body is the client's fault, not a corrupt file.
template <class T>
Result<T> AsClientError(Result<T> result) {
  if (!result && result.error().code == Code::kCorrupt)
    return InvalidArgument(result.error().message);
  return result;
}

Result<Json> ParseObject(std::string_view body) {
  LATTE_ASSIGN_OR_RETURN(const Json json, AsClientError(Json::Parse(body, "body", kBodyLimits)));
  if (!json.is_object()) return InvalidArgument("body: expected a JSON object");
  return json;
}

Status CheckNames(const Json& json, std::span<const std::string_view> known) {
  return json.ForEachMember([&](const std::string& key, const Json&) -> Status {
    if (std::find(known.begin(), known.end(), key) != known.end()) return {};
    return InvalidArgument(
        fmt::format("{}: no such field; the fields are {}", key, fmt::join(known, ", ")));
  });
}

// The first of two names of one field.
Result<bool> BoolOr(const Json& json, std::string_view name, std::string_view other,
                    bool fallback) {
  if (json.Find(name)) return AsClientError(json.GetBoolOr(name, fallback));
  return AsClientError(json.GetBoolOr(other, fallback));
}

constexpr std::array<std::string_view, 3> kTokenizeOnly = {"add_special_tokens",
                                                           "return_token_strs", "with_pieces"};

// The prompt of a chat request. `other`: members that are not its own.
Result<std::vector<int32_t>> ChatTokens(const Json& json, std::span<const std::string_view> other,
                                        const ApiModel& model) {
  LATTE_ASSIGN_OR_RETURN(ApiRequest request,
                         ParseApiRequest(ApiEndpoint::kChat, json, model, {.other_fields = other}));
  return std::move(request.requests.front().tokens);
}

Result<std::vector<int32_t>> TextTokens(const Json& json, const ApiModel& model) {
  constexpr std::array<std::string_view, 8> kFields = {
      "model",       "prompt",        "content",           "add_special_tokens",
      "add_special", "parse_special", "return_token_strs", "with_pieces"};
  LATTE_RETURN_IF_ERROR(CheckNames(json, kFields));
  const std::string_view name = json.Find("prompt") ? "prompt" : "content";
  if (!json.Find(name))
    return InvalidArgument("prompt: expected a text in \"prompt\", or \"messages\", found neither");
  LATTE_ASSIGN_OR_RETURN(const std::string text, AsClientError(json.GetString(name)));
  LATTE_ASSIGN_OR_RETURN(const bool add, BoolOr(json, "add_special_tokens", "add_special", true));
  LATTE_ASSIGN_OR_RETURN(const bool parse, AsClientError(json.GetBoolOr("parse_special", false)));
  const Tokenizer& tokenizer = model.tokenizer;
  return tokenizer.Encode(text, {.add_bos = add && tokenizer.adds_bos(), .parse_special = parse});
}

Result<std::vector<int32_t>> ReadTokens(const Json& list, const Tokenizer& tokenizer) {
  if (!list.is_array()) return InvalidArgument("tokens: expected an array of token ids");
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < list.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const int64_t id, AsClientError(list.At(i).AsInt()));
    if (id < 0 || id >= tokenizer.vocab_size())
      return InvalidArgument(fmt::format("tokens[{}]: expected a token id in [0, {}), found {}", i,
                                         tokenizer.vocab_size(), id));
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

// The document ends with the call: together with the answer it would take too much memory.
struct Tokenized {
  std::vector<int32_t> tokens;
  bool with_strings = false;
};
Result<Tokenized> ReadTokenize(std::string_view body, const ApiModel& model) {
  LATTE_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  Tokenized out;
  LATTE_ASSIGN_OR_RETURN(out.with_strings, BoolOr(json, "return_token_strs", "with_pieces", false));
  LATTE_ASSIGN_OR_RETURN(out.tokens, json.Find("messages") ? ChatTokens(json, kTokenizeOnly, model)
                                                           : TextTokens(json, model));
  return out;
}

Result<std::vector<int32_t>> ReadDetokenize(std::string_view body, const ApiModel& model) {
  LATTE_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  constexpr std::array<std::string_view, 2> kFields = {"model", "tokens"};
  LATTE_RETURN_IF_ERROR(CheckNames(json, kFields));
  const std::optional<Json> list = json.Find("tokens");
  if (!list) return InvalidArgument("tokens: this field is missing");
  return ReadTokens(*list, model.tokenizer);
}

constexpr std::string_view kNoStrings = "null}";

// The bytes of the two lists of /tokenize.
int64_t TokensBytes(const Tokenized& found, const Tokenizer& tokenizer) {
  int64_t bytes = 0;
  std::string text;
  for (const int32_t token : found.tokens) {
    bytes += static_cast<int64_t>(fmt::formatted_size("{},", token));
    if (!found.with_strings) continue;
    text.clear();
    AppendJsonString(tokenizer.TokenBytes(token), &text);
    bytes += static_cast<int64_t>(text.size()) + 1;
  }
  return bytes;
}

Status CheckAnswerBytes(int64_t bytes, int64_t max_bytes) {
  if (bytes <= max_bytes) return {};
  return InvalidArgument(fmt::format(
      "expected an answer of at most {} bytes, which --max-answer-bytes sets; it would have {}: "
      "send less at once",
      max_bytes, bytes));
}

}  // namespace

std::string ModelsBody(const ServedModel& served) {
  JsonOut data = JsonOut::array();
  for (const std::string& name : served.names) data.push_back(ModelJson(served, name));
  return Dump({{"object", "list"}, {"data", std::move(data)}});
}

Result<std::string> ModelBody(const ServedModel& served, std::string_view name) {
  for (const std::string& known : served.names)
    if (known == name) return Dump(ModelJson(served, known));
  return NotFound(
      fmt::format("model: expected '{}', found '{}'", fmt::join(served.names, "' or '"), name));
}

std::string PropsBody(const ServedModel& served, const ApiModel& model) {
  const EngineOptions& engine = served.engine;
  JsonOut out = {{"model", served.names.front()},
                 {"names", served.names},
                 {"version", served.version},
                 {"max_model_len", served.max_model_len},
                 {"vocab_size", model.tokenizer.vocab_size()}};
  if (model.chat) {
    out["chat_format"] = ChatFormatName(model.chat->format());
    out["chat_template"] = model.chat->chat_template();
    out["has_thinking_switch"] = model.chat->has_thinking_switch();
  } else {
    out["chat_format"] = nullptr;
    out["chat_problem"] = model.chat.error().message;
  }
  const GenerationDefaults& defaults = model.defaults;
  out["defaults"] = {{"temperature", defaults.temperature},
                     {"top_k", defaults.top_k},
                     {"top_p", defaults.top_p},
                     {"min_p", defaults.min_p},
                     {"repetition_penalty", defaults.repetition_penalty}};
  out["engine"] = {{"dtype", engine.dtype},
                   {"cache_dtype", engine.cache_dtype.empty() ? engine.dtype : engine.cache_dtype},
                   {"attention", engine.attention},
                   {"deterministic", engine.deterministic},
                   {"threads", engine.threads},
                   {"page_tokens", engine.page_tokens},
                   {"mha_bytes_per_token", served.mha_bytes_per_token},
                   {"cache_bytes", engine.cache_bytes},
                   {"weight_bytes", served.plan.weight_bytes},
                   {"workspace_bytes", served.plan.workspace_bytes},
                   {"max_batch_tokens", engine.max_batch_tokens},
                   {"max_sequences", engine.max_sequences},
                   {"max_queued_requests", engine.max_queued_requests},
                   {"max_queued_tokens", engine.max_queued_tokens},
                   {"prefix_cache", engine.prefix_cache},
                   {"cache_dir", !engine.cache_dir.empty()}};
  return Dump(out);
}

std::string VersionBody(std::string_view version) {
  return Dump({{"version", version}, {"name", "latte"}});
}

Result<std::string> TokenizeBody(std::string_view body, const ServedModel& served,
                                 const ApiModel& model, int64_t max_bytes) {
  return CatchExhaustion([&]() -> Result<std::string> {
    LATTE_ASSIGN_OR_RETURN(Tokenized found, ReadTokenize(body, model));
    found.tokens.shrink_to_fit();
    std::string out = fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[)",
                                  found.tokens.size(), served.max_model_len);
    const std::string_view before_strings = R"(],"token_strs":)";
    // The exact size: a string that grows takes up to three times its bytes.
    const int64_t size = static_cast<int64_t>(out.size()) + TokensBytes(found, model.tokenizer) +
                         static_cast<int64_t>(before_strings.size() + kNoStrings.size());
    LATTE_RETURN_IF_ERROR(CheckAnswerBytes(size, max_bytes));
    out.reserve(static_cast<size_t>(size));
    for (const int32_t token : found.tokens) {
      if (!out.ends_with('[')) out += ',';
      fmt::format_to(std::back_inserter(out), "{}", token);
    }
    out += before_strings;
    if (!found.with_strings) return out.append(kNoStrings);
    out += '[';
    for (const int32_t token : found.tokens) {
      if (!out.ends_with('[')) out += ',';
      AppendJsonString(model.tokenizer.TokenBytes(token), &out);
    }
    out += "]}";
    return out;
  });
}

Result<std::string> DetokenizeBody(std::string_view body, const ApiModel& model,
                                   int64_t max_bytes) {
  return CatchExhaustion([&]() -> Result<std::string> {
    LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ReadDetokenize(body, model));
    int64_t bytes = 0;
    for (const int32_t token : tokens)
      bytes += static_cast<int64_t>(model.tokenizer.TokenBytes(token).size());
    LATTE_RETURN_IF_ERROR(CheckAnswerBytes(2 * bytes, max_bytes));
    LATTE_ASSIGN_OR_RETURN(const std::string text, model.tokenizer.Decode(tokens));
    const std::string quoted = JsonString(text);
    return fmt::format(R"({{"prompt":{},"content":{}}})", quoted, quoted);
  });
}

Result<std::string> ApplyTemplateBody(std::string_view body, const ApiModel& model) {
  return CatchExhaustion([&]() -> Result<std::string> {
    LATTE_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
    LATTE_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ChatTokens(json, {}, model));
    LATTE_ASSIGN_OR_RETURN(const std::string text, model.tokenizer.Decode(tokens));
    return fmt::format(R"({{"prompt":{}}})", JsonString(text));
  });
}

}  // namespace latte
