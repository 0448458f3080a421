#include "src/api/common/reasoning.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr auto kEfforts =
    std::to_array<std::string_view>({"none", "minimal", "low", "medium", "high", "xhigh", "max"});

constexpr std::string_view kEffort = "reasoning_effort";

bool IsSwitch(std::string_view name) { return name == "thinking" || name == "enable_thinking"; }

// The variables that a template gets from the request itself.
constexpr auto kReserved =
    std::to_array<std::string_view>({"messages", "tools", "documents", "bos_token", "eos_token",
                                     "add_generation_prompt", "continue_final_message"});

// Requires: a depth within JsonLimits, which every Json has.
Result<JsonOut> Copy(const Json& value) {
  if (value.is_string()) return JsonOut(*value.AsString());
  if (value.is_bool()) return JsonOut(*value.AsBool());
  if (value.is_integer()) {
    LATTE_ASSIGN_OR_RETURN(const int64_t number, value.AsInt());
    return JsonOut(number);
  }
  if (value.is_number()) {
    LATTE_ASSIGN_OR_RETURN(const double number, value.AsDouble());
    return JsonOut(number);
  }
  if (value.is_array()) {
    JsonOut out = JsonOut::array();
    for (size_t i = 0; i < value.size(); ++i) {
      LATTE_ASSIGN_OR_RETURN(JsonOut item, Copy(value.At(i)));
      out.push_back(std::move(item));
    }
    return out;
  }
  if (!value.is_object()) return JsonOut(nullptr);
  JsonOut out = JsonOut::object();
  LATTE_RETURN_IF_ERROR(value.ForEachMember([&](const std::string& key, const Json& v) -> Status {
    LATTE_ASSIGN_OR_RETURN(out[key], Copy(v));
    return {};
  }));
  return out;
}

Status SetThinking(const Json& value, bool thinking, ApiReasoning* out) {
  if (out->thinking && *out->thinking != thinking)
    return InvalidArgument(
        fmt::format("{}: it contradicts {}; give one of them", value.path(), out->thinking_path));
  out->thinking = thinking;
  out->thinking_path = value.path();
  return {};
}

Status ReadVariable(const std::string& name, const Json& value, ApiReasoning* out) {
  if (IsSwitch(name)) return ReadThinkingSwitch(value, out);
  const bool is_bool = value.is_bool();
  if (name == "add_generation_prompt" && is_bool && *value.AsBool()) return {};
  if (name == "continue_final_message" && is_bool && !*value.AsBool()) return {};
  if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end())
    return Unsupported(value.path() +
                       ": this variable cannot be given, as it is made of the request; leave it "
                       "out");
  LATTE_ASSIGN_OR_RETURN(out->variables[name], Copy(value));
  return {};
}

// Checks that the chat format supports the switch.
Status CheckSwitch(bool thinking, const std::string& path, const ChatPromptBuilder& chat) {
  if (chat.has_thinking_switch() || thinking == chat.thinks_by_itself()) return {};
  return InvalidArgument(fmt::format(
      "{}: this model's chat format ({}) has no switch for reasoning{}; leave it out", path,
      ChatFormatName(chat.format()), chat.thinks_by_itself() ? " and always begins with it" : ""));
}

}  // namespace

Status ReadTemplateVariables(const Json& value, ApiReasoning* out) {
  if (!value.is_object()) return InvalidArgument(value.path() + ": expected an object");
  return value.ForEachMember([&](const std::string& name, const Json& member) -> Status {
    return value.Find(name) ? ReadVariable(name, member, out) : Status();
  });
}

Status ReadThinking(const Json& value, ApiReasoning* out) {
  if (!value.is_object())
    return InvalidArgument(value.path() + R"(: expected an object, {"type": "enabled"})");
  std::optional<int64_t> budget;
  LATTE_RETURN_IF_ERROR(value.ForEachMember([&](const std::string& name, const Json& v) -> Status {
    if (name == "type" || !value.Find(name)) return {};
    if (name == "budget_tokens") return v.AsWhole().map([&](int64_t found) { budget = found; });
    if (name == "display")  // answers show all reasoning
      return v.AsString().map([](const std::string&) {});
    return Unsupported(v.path() + ": this field is not supported; leave it out");
  }));
  if (budget) out->notes.emplace_back("thinking.budget_tokens has no effect");
  std::string fallback = "auto";
  if (budget && *budget >= 0) fallback = *budget > 0 ? "enabled" : "disabled";
  LATTE_ASSIGN_OR_RETURN(const std::string type, value.GetStringOr("type", fallback));
  if (type == "auto" || type == "adaptive" || type == "between_tools") return {};
  if (type != "enabled" && type != "disabled")
    return InvalidArgument(fmt::format(
        "{}: expected type enabled, disabled, auto, adaptive or between_tools, found '{}'",
        value.path(), type));
  return SetThinking(value, type == "enabled", out);
}

Status ReadThinkingSwitch(const Json& value, ApiReasoning* out) {
  LATTE_ASSIGN_OR_RETURN(const bool thinking, value.AsBool());
  return SetThinking(value, thinking, out);
}

Status ReadReasoningEffort(const Json& value, ApiReasoning* out) {
  LATTE_ASSIGN_OR_RETURN(const std::string effort, value.AsString());
  if (std::find(kEfforts.begin(), kEfforts.end(), effort) == kEfforts.end())
    return InvalidArgument(fmt::format("{}: expected one of {}, found '{}'", value.path(),
                                       fmt::join(kEfforts, ", "), effort));
  out->effort = effort;
  out->effort_path = value.path();
  return {};
}

Result<ChatOptions> ReasoningOptions(const ApiReasoning& reasoning, const ChatPromptBuilder& chat,
                                     std::vector<std::string>* notes) {
  ChatOptions out;
  notes->insert(notes->end(), reasoning.notes.begin(), reasoning.notes.end());
  const bool is_template = chat.format() == ChatFormat::kTemplate;
  const auto uses = [&](std::string_view name) {
    return chat.chat_template().find(name) != std::string::npos;
  };
  if (!is_template && !reasoning.variables.empty())
    return InvalidArgument(
        fmt::format("chat_template_kwargs: this model's chat format ({}) is no template and has no "
                    "variable '{}'; leave it out",
                    ChatFormatName(chat.format()), reasoning.variables.begin().key()));
  for (const auto& [name, value] : reasoning.variables.items())
    if (!uses(name))
      notes->push_back(fmt::format("chat_template_kwargs: the chat template has no '{}'", name));
  JsonOut variables = reasoning.variables;
  std::optional<bool> thinking = reasoning.thinking;
  if (thinking) LATTE_RETURN_IF_ERROR(CheckSwitch(*thinking, reasoning.thinking_path, chat));
  if (reasoning.effort) {
    const bool wanted = *reasoning.effort != "none";
    if (!thinking && !wanted)
      LATTE_RETURN_IF_ERROR(CheckSwitch(false, reasoning.effort_path, chat));
    if (!thinking) thinking = wanted;
    if (is_template && !variables.contains(kEffort))
      variables[std::string(kEffort)] = *reasoning.effort;
    if (!chat.has_thinking_switch() && !uses(kEffort) && wanted)
      notes->push_back(fmt::format("{}: the chat format has no choice of it", kEffort));
  }
  if (chat.has_thinking_switch()) out.thinking = thinking;
  if (!variables.empty()) out.variables = Dump(variables);
  return out;
}

}  // namespace latte
