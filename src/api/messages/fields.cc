#include "src/api/messages/fields.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/fields.h"
#include "src/api/messages/members.h"
#include "src/api/messages/tools.h"
#include "src/base/fields/json_values.h"

namespace latte {
namespace {

constexpr size_t kMostStops = 16;
constexpr size_t kLongestStop = 256;

Status ReadRequiredMaxTokens(const Json& value, AnthropicFields& f) {
  f.has_max_tokens = true;
  return Set(ReadTokenLimit(value), &f.settings.stop.max_tokens);
}

Status ReadTemperature(const Json& value, AnthropicFields& f) {
  LATTE_ASSIGN_OR_RETURN(const double found, value.AsDouble());
  if (found < 0 || found > 1)
    return InvalidArgument(
        fmt::format("{}: expected a number in [0, 1], found {}", value.path(), found));
  f.settings.sampling.temperature = found;
  return {};
}

Status ReadStops(const Json& value, AnthropicFields& f) {
  if (!value.is_array()) return InvalidArgument(value.path() + ": expected an array of strings");
  if (value.size() > kMostStops)
    return InvalidArgument(fmt::format("{}: expected at most {} strings, found {}", value.path(),
                                       kMostStops, value.size()));
  for (size_t i = 0; i < value.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(std::string stop, value.At(i).AsString());
    if (stop.empty() || stop.size() > kLongestStop)
      return InvalidArgument(fmt::format("{}: expected a string of 1 to {} bytes, found {}",
                                         value.At(i).path(), kLongestStop, stop.size()));
    f.settings.stop.strings.push_back(std::move(stop));
  }
  return {};
}

Status ReadOutputFormat(const Json& value, AnthropicFields& f) {
  LATTE_RETURN_IF_ERROR(CheckMembers(value, {"type", "schema"}));
  LATTE_ASSIGN_OR_RETURN(const std::string type, value.GetString("type"));
  if (type != "json_schema")
    return Unsupported(
        fmt::format("{}: expected type json_schema, found '{}'", value.path(), type));
  LATTE_ASSIGN_OR_RETURN(const Json schema, value.Get("schema"));
  return ReadGuide("json", schema, &f.format);
}

Status ReadOutputConfig(const Json& value, AnthropicFields& f) {
  constexpr auto kEfforts =
      std::to_array<std::string_view>({"low", "medium", "high", "xhigh", "max"});
  LATTE_RETURN_IF_ERROR(CheckMembers(value, {"effort", "format", "task_budget"}));
  if (const auto format = value.Find("format")) LATTE_RETURN_IF_ERROR(ReadOutputFormat(*format, f));
  if (!value.Find("effort")) return {};
  LATTE_ASSIGN_OR_RETURN(f.effort, value.GetString("effort"));
  if (std::find(kEfforts.begin(), kEfforts.end(), *f.effort) != kEfforts.end()) return {};
  return InvalidArgument(fmt::format("{}: expected effort {}, found '{}'", value.path(),
                                     fmt::join(kEfforts, ", "), *f.effort));
}

struct MessagesField {
  std::string_view name;
  Status (*read)(const Json& value, AnthropicFields& fields);
};

constexpr auto kMessagesFields = std::to_array<MessagesField>({
    {"model", [](const Json& v, AnthropicFields& f) { return Set(v.AsString(), &f.model); }},
    {"stream", [](const Json& v, AnthropicFields& f) { return Set(v.AsBool(), &f.stream); }},
    {"system", [](const Json& v, AnthropicFields& f) { return Set(Result<Json>(v), &f.system); }},
    {"messages",
     [](const Json& v, AnthropicFields& f) { return Set(Result<Json>(v), &f.messages); }},
    {"max_tokens", ReadRequiredMaxTokens},
    {"temperature", ReadTemperature},
    {"top_p", [](const Json& v,
                 AnthropicFields& f) { return Set(v.AsDouble(), &f.settings.sampling.top_p); }},
    {"top_k", [](const Json& v,
                 AnthropicFields& f) { return Set(ReadTopK(v), &f.settings.sampling.top_k); }},
    {"stop_sequences", ReadStops},
    {"thinking", [](const Json& v, AnthropicFields& f) { return ReadThinking(v, &f.reasoning); }},
    {"output_config", ReadOutputConfig},
    {"tools", [](const Json& v, AnthropicFields& f) { return ReadAnthropicTools(v, &f.tools); }},
    {"tool_choice", [](const Json& v, AnthropicFields& f) { return ReadToolChoice(v, &f.tools); }},
});

// Fields that change no answer of Latte, or only with values that are refused. Clients cannot
// always be told to leave them out.
struct Ignored {
  std::string_view name;
  bool (*changes_nothing)(const Json& value);
  std::string_view taken;  // description of accepted values; empty: only null is accepted
};

constexpr std::string_view kObject = "an object";

constexpr auto kIgnored = std::to_array<Ignored>({
    // The user, and accounting by the service.
    {"metadata", IsObject, kObject},
    {"user_profile_id", IsShortName, kShortName},
    {"workspace_id", IsShortName, kShortName},
    {"inference_geo", IsShortName, kShortName},
    {"billing_policy", IsObject, kObject},
    {"diagnostics", IsObject, kObject},
    {"service_tier",
     [](const Json& v) {
       return IsOneOf(v, {"auto", "standard_only"});
     },
     "auto or standard_only"},
    {"speed",
     [](const Json& v) {
       return IsOneOf(v, {"standard", "fast"});
     },
     "standard or fast"},
    // Latte refuses no answer, so that no other model need give it.
    {"fallbacks", IsList, "an array"},
    {"fallback_credit_token", IsShortName, kShortName},
    // Latte caches prefixes by itself, and shortens no conversation.
    {"cache_control", IsObject, kObject},
    {"context_management", IsObject, kObject},
    {"compaction", IsObject, kObject},
    // What only Anthropic's servers have.
    {"container", Never, ""},
    {"thread", Never, ""},
    {"mcp_servers", IsEmptyList, "[]"},
});

Status Ignore(const Ignored& field, const Json& value, AnthropicFields* fields) {
  fields->ignored.emplace_back(field.name);
  if (field.changes_nothing(value)) return {};
  return Unsupported(
      field.taken.empty()
          ? value.path() + ": this field is not supported; leave it out"
          : fmt::format("{}: this value is not supported; what changes nothing is taken: {}",
                        value.path(), field.taken));
}

template <class List>
auto FindByName(const List& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(),
                      [&](const auto& field) { return field.name == name; });
}

}  // namespace

Status ReadAnthropicFields(const Json& body, AnthropicFields* fields) {
  if (!body.is_object()) return InvalidArgument(body.path() + ": expected an object");
  return body.ForEachMember([&](const std::string& name, const Json& value) -> Status {
    if (!body.Find(name)) return {};  // null
    const auto* const field = FindByName(kMessagesFields, name);
    if (field != kMessagesFields.end()) return field->read(value, *fields);
    const auto* const ignored = FindByName(kIgnored, name);
    if (ignored != kIgnored.end()) return Ignore(*ignored, value, fields);
    return InvalidArgument(value.path() + ": /v1/messages has no such field here; leave it out");
  });
}

std::vector<std::string_view> AnthropicIgnoredNames() {
  std::vector<std::string_view> names;
  for (const Ignored& field : kIgnored) names.push_back(field.name);
  return names;
}

}  // namespace latte
