#include "src/api/common/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/neutral_fields.h"
#include "src/base/fields/fields.h"
#include "src/base/fields/json_values.h"
#include "src/base/fields/suggest.h"

namespace latte {
namespace {

Result<int32_t> AsInt32(const Json& value) {
  using Limits = std::numeric_limits<int32_t>;
  LATTE_ASSIGN_OR_RETURN(const int64_t number, value.AsWhole());
  if (number < Limits::min() || number > Limits::max())
    return InvalidArgument(
        fmt::format("{}: expected an integer of 32 bits, found {}", value.path(), number));
  return static_cast<int32_t>(number);
}

// For logprobs. Not checked by Request::Validate, where -1 means none.
Result<int> AsCount(const Json& value) {
  LATTE_ASSIGN_OR_RETURN(const int32_t count, AsInt32(value));
  if (count < 0 || count > 20)
    return InvalidArgument(
        fmt::format("{}: expected a number in [0, 20], found {}", value.path(), count));
  return count;
}

// The switch of a chat. Clients that fill in the other endpoint's field send 0.
Status ReadChatLogprobs(const Json& value, ApiFields& f) {
  if (value.is_integer() && value.AsInt() == 0) return {};
  return Set(value.AsBool(), &f.chat_logprobs);
}

// The count of a completion. Clients that fill in the other endpoint's field send false.
Status ReadCompletionLogprobs(const Json& value, ApiFields& f) {
  if (value.is_bool() && value.AsBool() == false) return {};
  return Set(AsCount(value), &f.logprobs);
}

Status ReadSkipSpecial(const Json& value, ApiFields& f) {
  LATTE_ASSIGN_OR_RETURN(const bool skip, value.AsBool());
  f.request.keep_special = !skip;
  return {};
}

Status ReadSeed(const Json& value, ApiFields& f) {
  LATTE_ASSIGN_OR_RETURN(const int64_t seed, value.AsWhole());
  f.request.sampling.seed = static_cast<uint64_t>(seed);
  return {};
}

Status ReadLogitBias(const Json& value, ApiFields& f) {
  if (value.is_array() && value.size() == 0) return {};
  if (!value.is_object())
    return InvalidArgument(value.path() + ": expected an object of token ids and numbers");
  return value.ForEachMember([&](const std::string& key, const Json& bias) -> Status {
    int32_t token = 0;
    const char* const end = key.data() + key.size();
    const auto [next, error] = std::from_chars(key.data(), end, token);
    // "07" would be a second name of "7".
    if (error != std::errc() || next != end || token < 0 || fmt::to_string(token) != key)
      return InvalidArgument(
          fmt::format("{}: expected token ids as keys, found '{}'", value.path(), key));
    if (!value.Find(key)) return {};  // null
    LATTE_ASSIGN_OR_RETURN(const double number, bias.AsDouble());
    if (number < -100 || number > 100)
      return InvalidArgument(
          fmt::format("{}: expected a number in [-100, 100], found {}", bias.path(), number));
    f.request.sampling.logit_bias.emplace_back(token, static_cast<float>(number));
    return {};
  });
}

Status ReadStop(const Json& value, ApiFields& f) {
  std::vector<std::string>& strings = f.request.stop.strings;
  if (!value.is_array()) {
    if (!value.is_string())
      return InvalidArgument(value.path() + ": expected a string or an array of strings");
    LATTE_ASSIGN_OR_RETURN(strings.emplace_back(), value.AsString());
    return {};
  }
  for (size_t i = 0; i < value.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(strings.emplace_back(), value.At(i).AsString());
  }
  return {};
}

Status ReadStopTokens(const Json& value, ApiFields& f) {
  if (!value.is_array()) return InvalidArgument(value.path() + ": expected an array of token ids");
  for (size_t i = 0; i < value.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(f.request.stop.tokens.emplace_back(), AsInt32(value.At(i)));
  }
  return {};
}

// Without a stream it has no effect.
Status ReadStreamOptions(const Json& value, ApiFields& f) {
  const auto checked = CheckNeutralField(ApiEndpoint::kChat, "stream_options", value);
  if (!*checked) return *checked;
  LATTE_RETURN_IF_ERROR(Set(value.GetBoolOr("include_usage", false), &f.include_usage));
  return Set(value.GetBoolOr("continuous_usage_stats", false), &f.continuous_usage);
}

enum class FieldPlace { kBoth, kChat, kCompletions };
using FieldReader = Status (*)(const Json& value, ApiFields& fields);

struct ChatField {
  std::string_view name;
  FieldPlace where;
  FieldReader read;
};

// Fields that are no member of SamplingParams, StopConditions and Request, or are written otherwise
// than there. All others are read by the lists of those.
constexpr auto kChatFields = std::to_array<ChatField>({
    {"model", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return Set(v.AsString(), &f.model); }},
    {"messages", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) {
       f.messages = v;
       return Status();
     }},
    {"prompt", FieldPlace::kCompletions,
     [](const Json& v, ApiFields& f) {
       f.prompt = v;
       return Status();
     }},
    {"max_tokens", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return Set(ReadTokenLimit(v), &f.max_tokens); }},
    {"max_completion_tokens", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return Set(ReadTokenLimit(v), &f.max_completion_tokens); }},
    {"top_k", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return Set(ReadTopK(v), &f.request.sampling.top_k); }},
    {"logit_bias", FieldPlace::kBoth, ReadLogitBias},
    {"seed", FieldPlace::kBoth, ReadSeed},
    {"stop", FieldPlace::kBoth, ReadStop},
    {"stop_token_ids", FieldPlace::kBoth, ReadStopTokens},
    {"logprobs", FieldPlace::kChat, ReadChatLogprobs},
    {"top_logprobs", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return Set(AsCount(v), &f.logprobs); }},
    {"logprobs", FieldPlace::kCompletions, ReadCompletionLogprobs},
    {"prompt_logprobs", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return Set(AsCount(v), &f.request.prompt_logprobs); }},
    {"echo", FieldPlace::kCompletions,
     [](const Json& v, ApiFields& f) { return Set(v.AsBool(), &f.request.echo); }},
    {"stream", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return Set(v.AsBool(), &f.stream); }},
    {"stream_options", FieldPlace::kBoth, ReadStreamOptions},
    {"skip_special_tokens", FieldPlace::kBoth, ReadSkipSpecial},
    {"chat_template_kwargs", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return ReadTemplateVariables(v, &f.reasoning); }},
    {"thinking", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return ReadThinking(v, &f.reasoning); }},
    {"enable_thinking", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return ReadThinkingSwitch(v, &f.reasoning); }},
    {"reasoning_effort", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return ReadReasoningEffort(v, &f.reasoning); }},
    {"tools", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return ReadTools(v, &f.tools); }},
    {"tool_choice", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return ReadToolChoice(v, &f.tools); }},
    {"response_format", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return ReadResponseFormat(v, &f.format); }},
    {"structured_outputs", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return ReadStructuredOutputs(v, &f.format); }},
    {"guided_json", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return ReadGuide("json", v, &f.format); }},
    {"guided_regex", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return ReadGuide("regex", v, &f.format); }},
    {"guided_choice", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return ReadGuide("choice", v, &f.format); }},
    {"guided_grammar", FieldPlace::kBoth,
     [](const Json& v, ApiFields& f) { return ReadGuide("grammar", v, &f.format); }},
    {"parallel_tool_calls", FieldPlace::kChat,
     [](const Json& v, ApiFields& f) { return Set(v.AsBool(), &f.tools.parallel); }},
});

const ChatField* FindField(ApiEndpoint endpoint, std::string_view name) {
  const FieldPlace here =
      endpoint == ApiEndpoint::kChat ? FieldPlace::kChat : FieldPlace::kCompletions;
  const auto* const found =
      std::find_if(kChatFields.begin(), kChatFields.end(), [&](const ChatField& field) {
        return field.name == name && (field.where == FieldPlace::kBoth || field.where == here);
      });
  return found == kChatFields.end() ? nullptr : found;
}

// A value of the type that a field of a list has.
Status SetField(const Json& value, double* out) { return Set(value.AsDouble(), out); }
Status SetField(const Json& value, int64_t* out) { return Set(value.AsWhole(), out); }
Status SetField(const Json& value, int* out) { return Set(AsInt32(value), out); }
Status SetField(const Json& value, bool* out) { return Set(value.AsBool(), out); }
Status SetField(const Json& value, std::string* out) { return Set(value.AsString(), out); }

// Sets the field of `out` whose key is `name`; nothing if its list has none.
template <class T>
std::optional<Status> ReadListed(std::string_view name, const Json& value, T* out) {
  std::optional<Status> read;
  T::VisitFields([&](const Field& field, auto member, auto...) {
    if constexpr (requires { SetField(value, &member(*out)); })
      if (JsonKey(field) == name) read = SetField(value, &member(*out));
  });
  return read;
}

std::optional<Status> ReadListed(std::string_view name, const Json& value, Request* out) {
  if (auto read = ReadListed(name, value, &out->sampling)) return read;
  if (auto read = ReadListed(name, value, &out->stop)) return read;
  return ReadListed<Request>(name, value, out);
}

// Endpoints where a field of the lists does not exist.
bool Absent(ApiEndpoint endpoint, std::string_view name) {
  return endpoint == ApiEndpoint::kChat && name == "echo";
}

// The names of the fields that have an effect, for suggestions. `messages` and `prompt` are read
// elsewhere.
std::vector<std::string> FieldNames() {
  std::vector<std::string> names = {"messages", "prompt"};
  for (const ChatField& field : kChatFields) names.emplace_back(field.name);
  const auto add = [&](const Field& field, auto&&...) { names.emplace_back(JsonKey(field)); };
  SamplingParams::VisitFields(add);
  StopConditions::VisitFields(add);
  Request::VisitFields(add);
  return names;
}

// "; did you mean …?", or who has the field of that name.
std::string Suggestion(ApiEndpoint endpoint, const std::string& name) {
  const std::vector<std::string> names = FieldNames();
  if (std::ranges::find(names, name) == names.end()) return DidYouMean(name, names);
  const bool is_chat = endpoint == ApiEndpoint::kChat;
  return fmt::format("; {} has it", Url(is_chat ? ApiEndpoint::kCompletions : ApiEndpoint::kChat));
}

std::optional<Status> ReadField(ApiEndpoint endpoint, const std::string& name, const Json& value,
                                ApiFields* fields) {
  if (const ChatField* field = FindField(endpoint, name)) return field->read(value, *fields);
  if (!Absent(endpoint, name))
    if (const auto read = ReadListed(name, value, &fields->request)) return read;
  const auto checked = CheckNeutralField(endpoint, name, value);
  if (checked) fields->ignored.push_back(name);
  return checked;
}

}  // namespace

Result<int64_t> ReadTokenLimit(const Json& value) {
  return value.AsWhole().map([](int64_t most) { return most == -1 ? kToTheEnd : most; });
}

Result<int64_t> ReadTopK(const Json& value) {
  return value.AsWhole().map([](int64_t k) { return k == -1 ? int64_t{0} : k; });
}

std::optional<Status> ReadChatField(const std::string& name, const Json& value, ApiFields* fields) {
  return ReadField(ApiEndpoint::kChat, name, value, fields);
}

Status ReadApiFields(ApiEndpoint endpoint, const Json& body,
                     std::span<const std::string_view> other, ApiFields* fields) {
  if (!body.is_object()) return InvalidArgument(body.path() + ": expected an object");
  LATTE_RETURN_IF_ERROR(CheckBestOf(body));
  return body.ForEachMember([&](const std::string& name, const Json& value) -> Status {
    if (!body.Find(name)) return {};  // null
    if (std::find(other.begin(), other.end(), name) != other.end()) return {};
    if (const auto read = ReadField(endpoint, name, value, fields)) return *read;
    return InvalidArgument(fmt::format("{}: {} has no such field here; leave it out{}",
                                       value.path(), Url(endpoint), Suggestion(endpoint, name)));
  });
}

}  // namespace latte
