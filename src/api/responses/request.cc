#include "src/api/responses/request.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/api/common/conversation.h"
#include "src/api/common/fields.h"
#include "src/api/responses/input.h"
#include "src/api/responses/tools.h"
#include "src/base/fields/json_values.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

struct ResponsesFields {
  ApiFields shared;  // with chats
  std::optional<Json> input;
  std::optional<Json> tools;
  std::optional<std::string> instructions;
  std::optional<int64_t> max_output_tokens;
  std::vector<std::string> notes;
  ResponsesReply reply;
};

// ResponsesFields that chats have under the same name: of the API, and the extensions of other
// servers.
constexpr auto kShared = std::to_array<std::string_view>({"model",
                                                          "stream",
                                                          "stream_options",
                                                          "temperature",
                                                          "top_p",
                                                          "parallel_tool_calls",
                                                          "user",
                                                          "safety_identifier",
                                                          "prompt_cache_key",
                                                          "prompt_cache_retention",
                                                          "service_tier",
                                                          "store",
                                                          "metadata",
                                                          "top_k",
                                                          "min_p",
                                                          "seed",
                                                          "stop",
                                                          "stop_token_ids",
                                                          "ignore_eos",
                                                          "min_tokens",
                                                          "logit_bias",
                                                          "repetition_penalty",
                                                          "presence_penalty",
                                                          "frequency_penalty",
                                                          "skip_special_tokens",
                                                          "priority",
                                                          "cache_salt",
                                                          "request_id",
                                                          "chat_template_kwargs",
                                                          "thinking",
                                                          "enable_thinking",
                                                          "structured_outputs",
                                                          "guided_json",
                                                          "guided_regex",
                                                          "guided_choice",
                                                          "guided_grammar"});

constexpr auto kIncludes = std::to_array<std::string_view>(
    {"reasoning.encrypted_content", "file_search_call.results", "web_search_call.results",
     "web_search_call.action.sources", "message.input_image.image_url",
     "computer_call_output.output.image_url", "code_interpreter_call.outputs"});

Status Expect(bool accepted, const Json& value, std::string_view expected) {
  if (accepted) return {};
  return Unsupported(
      fmt::format("{}: this value is not supported; expected {}", value.path(), expected));
}

Status ReadMaxOutputTokens(const Json& value, ResponsesFields& f) {
  LATTE_ASSIGN_OR_RETURN(const int64_t most, ReadTokenLimit(value));
  if (most == kToTheEnd) return {};
  f.max_output_tokens = most;
  if (most >= 1) return {};
  return InvalidArgument(
      fmt::format("{}: expected 1 or more, or -1 for no limit, found {}", value.path(), most));
}

// {"format": …, "verbosity": …}
Status ReadTextSettings(const Json& value, ResponsesFields& f) {
  if (!value.is_object()) return InvalidArgument(value.path() + ": expected an object");
  return value.ForEachMember([&](const std::string& name, const Json& member) -> Status {
    if (!value.Find(name)) return {};  // null
    if (name == "verbosity") {
      LATTE_RETURN_IF_ERROR(
          Expect(IsOneOf(member, {"low", "medium", "high"}), member, "low, medium or high"));
      if (member.AsString() != "medium") f.notes.emplace_back("text.verbosity has no effect");
      return {};
    }
    if (name != "format") return InvalidArgument(member.path() + ": unknown field; leave it out");
    LATTE_ASSIGN_OR_RETURN(const std::string type, member.GetString("type"));
    LATTE_ASSIGN_OR_RETURN(f.reply.settings["text"]["format"],
                           ParseToEdit(member.Text(), member.path()));
    if (type != "json_schema") return ReadResponseFormat(member, &f.shared.format);
    LATTE_ASSIGN_OR_RETURN(const Json schema, member.Get("schema"));
    return ReadGuide("json", schema, &f.shared.format);
  });
}

// {"effort": …, "summary": …}: no summaries are made.
Status ReadReasoning(const Json& value, ResponsesFields& f) {
  if (!value.is_object()) return InvalidArgument(value.path() + ": expected an object");
  return value.ForEachMember([&](const std::string& name, const Json& member) -> Status {
    if (!value.Find(name)) return {};  // null
    if (name == "effort") {
      LATTE_RETURN_IF_ERROR(ReadReasoningEffort(member, &f.shared.reasoning));
      f.reply.settings["reasoning"]["effort"] = *f.shared.reasoning.effort;
      return {};
    }
    if (name == "summary" || name == "generate_summary")
      return Expect(IsOneOf(member, {"auto", "concise", "detailed", "none"}), member,
                    "auto, concise or detailed");
    if (name == "context")  // the chat format decides what the model sees again
      return Expect(IsOneOf(member, {"auto", "current_turn", "all_turns"}), member,
                    "auto, current_turn or all_turns");
    if (name == "mode") return Expect(IsOneOf(member, {"standard"}), member, "standard");
    return InvalidArgument(member.path() + ": unknown field; leave it out");
  });
}

Status ReadInclude(const Json& value, ResponsesFields& f) {
  if (!value.is_array()) return InvalidArgument(value.path() + ": expected an array of strings");
  for (size_t i = 0; i < value.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::string what, value.At(i).AsString());
    if (std::find(kIncludes.begin(), kIncludes.end(), what) == kIncludes.end())
      return Unsupported(
          fmt::format("{}: '{}' is not supported; leave it out", value.At(i).path(), what));
    if (what == kIncludes.front()) f.reply.gives_reasoning_back = true;
  }
  return {};
}

Status RefuseState(const Json& value, ResponsesFields&) {
  return Unsupported(value.path() +
                     ": this server stores no responses; send the whole conversation as input");
}

struct Own {
  std::string_view name;
  Status (*read)(const Json& value, ResponsesFields& fields);
};

constexpr auto kOwn = std::to_array<Own>({
    {"input",
     [](const Json& v, ResponsesFields& f) {
       f.input = v;
       return Status();
     }},
    {"tools",
     [](const Json& v, ResponsesFields& f) {
       f.tools = v;
       return Status();
     }},
    {"instructions",
     [](const Json& v, ResponsesFields& f) { return Set(v.AsString(), &f.instructions); }},
    {"max_output_tokens", ReadMaxOutputTokens},
    {"text", ReadTextSettings},
    {"reasoning", ReadReasoning},
    {"include", ReadInclude},
    {"tool_choice",
     [](const Json& v, ResponsesFields& f) {
       return ReadResponsesToolChoice(v, &f.shared.tools, &f.reply.settings["tool_choice"]);
     }},
    {"previous_response_id", RefuseState},
    {"conversation", RefuseState},
    {"prompt", RefuseState},
    {"background", [](const Json& v, ResponsesFields&) { return Expect(IsFalse(v), v, "false"); }},
    {"truncation",
     [](const Json& v, ResponsesFields&) {
       return Expect(IsOneOf(v, {"disabled"}), v, "disabled");
     }},
    {"context_management",
     [](const Json& v, ResponsesFields&) { return Expect(IsEmptyList(v), v, "[]"); }},
    {"top_logprobs",
     [](const Json& v, ResponsesFields&) { return Expect(v.AsWhole() == 0, v, "0"); }},
    {"max_tool_calls",  // of tools that the service runs
     [](const Json& v, ResponsesFields&) { return Expect(v.is_integer(), v, "an integer"); }},
    {"client_metadata",
     [](const Json& v, ResponsesFields&) { return Expect(IsObject(v), v, "an object"); }},
});

Status ReadResponsesField(const std::string& name, const Json& value, ResponsesFields* f) {
  for (const Own& own : kOwn)
    if (own.name == name) return own.read(value, *f);
  if (std::find(kShared.begin(), kShared.end(), name) != kShared.end())
    if (const auto read = ReadChatField(name, value, &f->shared)) return *read;
  return InvalidArgument(fmt::format("{}: {} has no such field; leave it out", value.path(),
                                     Url(ApiEndpoint::kResponses)));
}

// The members of the answer that repeat the request, in the order of the API.
JsonOut Settings(const Json& body, const ResponsesFields& f, JsonOut tools) {
  const JsonOut& read = f.reply.settings;
  const SamplingParams& sampling = f.shared.request.sampling;
  const ApiReasoning& reasoning = f.shared.reasoning;
  JsonOut out = {{"background", false},
                 {"instructions", f.instructions ? JsonOut(*f.instructions) : JsonOut(nullptr)}};
  out["max_output_tokens"] = f.max_output_tokens ? JsonOut(*f.max_output_tokens) : JsonOut(nullptr);
  out["max_tool_calls"] = nullptr;
  out["metadata"] = JsonOut::object();
  out["parallel_tool_calls"] = f.shared.tools.parallel;
  out["previous_response_id"] = nullptr;
  out["reasoning"] = {{"effort", reasoning.effort ? JsonOut(*reasoning.effort) : JsonOut(nullptr)},
                      {"summary", nullptr}};
  out["service_tier"] = "default";
  out["store"] = false;
  out["temperature"] = sampling.temperature;
  out["text"] = read.contains("text") ? read["text"] : JsonOut{{"format", {{"type", "text"}}}};
  out["tool_choice"] = read.contains("tool_choice") ? read["tool_choice"] : JsonOut("auto");
  out["tools"] = std::move(tools);
  out["top_logprobs"] = 0;
  out["top_p"] = sampling.top_p;
  out["truncation"] = "disabled";
  for (const char* name : {"prompt_cache_key", "safety_identifier", "user"})
    if (const auto value = body.Find(name); value && value->is_string())
      out[name] = *value->AsString();
  return out;
}

// The answer repeats metadata, whose values clients take for strings.
Status SetMetadata(const Json& body, JsonOut* settings) {
  const auto metadata = body.Find("metadata");
  if (!metadata) return {};
  return metadata->ForEachMember([&](const std::string& name, const Json& value) -> Status {
    if (!metadata->Find(name)) return {};  // null
    return Set(value.AsString(), &(*settings)["metadata"][name]);
  });
}

}  // namespace

Result<ApiRequest> ParseResponsesRequest(const Json& body, const ApiModel& model,
                                         const ApiRules& rules) {
  if (!body.is_object()) return InvalidArgument(body.path() + ": expected an object");
  ResponsesFields f;
  f.shared.request = DefaultSettings(model);
  LATTE_RETURN_IF_ERROR(body.ForEachMember([&](const std::string& name, const Json& value) {
    return body.Find(name) ? ReadResponsesField(name, value, &f) : Status();  // null
  }));
  if (!f.input) return InvalidArgument("input: this field is missing");
  ResponsesInput input;
  if (f.instructions) {
    input.messages.push_back({.role = "system", .content = f.instructions});
    input.places.emplace_back("instructions");
  }
  ResponsesToolReader tools;
  if (f.tools) LATTE_RETURN_IF_ERROR(tools.Add(*f.tools));
  LATTE_RETURN_IF_ERROR(ReadResponsesInput(*f.input, &tools, &input));
  if (input.messages.empty())
    return InvalidArgument("input: expected at least one item that the model can read");
  tools.Finish(&f.shared.tools, &f.reply);
  Request& settings = f.shared.request;
  settings.stop.max_tokens = f.max_output_tokens.value_or(kToTheEnd);
  LATTE_RETURN_IF_ERROR(settings.Validate());
  f.reply.settings = Settings(body, f, std::move(f.reply.settings["tools"]));
  LATTE_RETURN_IF_ERROR(SetMetadata(body, &f.reply.settings));

  ApiRequest out;
  out.ignored = std::move(f.shared.ignored);
  out.notes = std::move(f.notes);
  for (const auto* notes : {&tools.notes(), &std::as_const(input.notes)})
    out.notes.insert(out.notes.end(), notes->begin(), notes->end());
  ApiReply& reply = out.reply;
  reply.endpoint = ApiEndpoint::kResponses;
  reply.model = f.shared.model.empty() ? model.name : f.shared.model;
  reply.fingerprint = model.fingerprint;
  reply.stream = f.shared.stream;
  reply.keep_special = settings.keep_special;
  reply.prompts.clear();
  reply.responses = std::make_shared<const ResponsesReply>(std::move(f.reply));
  LATTE_RETURN_IF_ERROR(AddConversation({.settings = settings,
                                         .messages = std::move(input.messages),
                                         .places = std::move(input.places),
                                         .reasoning = f.shared.reasoning,
                                         .tools = f.shared.tools,
                                         .format = f.shared.format},
                                        model, rules, &out));
  return out;
}

}  // namespace latte
