#include "src/session/remote/answer_chunk.h"

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/session/remote/api_server.h"

namespace latte {
namespace {

// Sets *out to the text of a member. False: there is none.
bool ReadText(const Json& object, std::string_view name, std::string* out) {
  const std::optional<Json> found = object.Find(name);
  if (!found || !found->is_string()) return false;
  *out = *found->AsString();
  return true;
}

int64_t IntOr0(const Json& object, std::string_view name) {
  return object.GetIntOr(name, 0).value_or(0);
}

std::optional<AnswerUsage> ReadUsage(const Json& json) {
  const std::optional<Json> usage = json.Find("usage");
  if (!usage || !usage->is_object()) return std::nullopt;
  AnswerUsage out{.prompt_tokens = IntOr0(*usage, "prompt_tokens"),
                  .completion_tokens = IntOr0(*usage, "completion_tokens")};
  if (const std::optional<Json> details = usage->Find("prompt_tokens_details"))
    out.cached_tokens = IntOr0(*details, "cached_tokens");
  return out;
}

void ReadChoice(const Json& choice, AnswerChunk* out) {
  out->has_choice = true;
  ReadText(choice, "finish_reason", &out->finish_reason);
  if (ReadText(choice, "text", &out->text)) {  // of /v1/completions
    out->has_text = true;
    return;
  }
  std::optional<Json> message = choice.Find("delta");
  if (!message) message = choice.Find("message");
  if (!message) return;
  out->has_role = message->Find("role").has_value();
  out->has_text = ReadText(*message, "content", &out->text);
  if (ReadText(*message, "reasoning_content", &out->reasoning) ||
      ReadText(*message, "reasoning", &out->reasoning))
    out->has_text = true;
}

tl::unexpected<Error> ErrorIn(const Json& error) {
  std::string message;
  if (!ReadText(error, "message", &message) && error.is_string()) message = *error.AsString();
  return Fail(Code::kUnavailable,
              message.empty() ? "the server reports an error without a message" : OneLine(message));
}

}  // namespace

Result<AnswerChunk> ParseAnswerChunk(std::string_view data) {
  LATTE_ASSIGN_OR_RETURN(const Json json, Json::Parse(data, "event"));
  if (!json.is_object()) return Corrupt("event: expected a JSON object");
  if (const std::optional<Json> error = json.Find("error")) return ErrorIn(*error);
  AnswerChunk out;
  out.usage = ReadUsage(json);
  const std::optional<Json> choices = json.Find("choices");
  if (!choices) return out;
  if (!choices->is_array()) return Corrupt("event: 'choices': expected an array");
  for (size_t i = 0; i < choices->size(); ++i) {
    const Json choice = choices->At(i);
    if (IntOr0(choice, "index") == 0) ReadChoice(choice, &out);
  }
  return out;
}

}  // namespace latte
