#include "src/api/common/tools/tools.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr size_t kMaxTools = 1024;
constexpr size_t kMaxName = 256;

// The function of a tool in the format of chats.
Result<Json> FunctionOf(const Json& tool) {
  if (!tool.is_object()) return InvalidArgument(tool.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, tool.GetStringOr("type", "function"));
  if (type != "function")
    return Unsupported(fmt::format(
        "{}: tools of type '{}' are not supported; tools of type function are", tool.path(), type));
  return tool.Get("function");
}

}  // namespace

Status AddFunction(const Json& function, const std::optional<Json>& parameters, ApiTools* out,
                   KnownFunctions* known) {
  LATTE_ASSIGN_OR_RETURN(const std::string name, function.GetString("name"));
  if (name.empty() || name.size() > kMaxName)
    return InvalidArgument(fmt::format("{}: expected a name of 1 to {} bytes, found {}",
                                       function.path(), kMaxName, name.size()));
  if (!out->names.insert(name).second)
    return InvalidArgument(
        fmt::format("{}: two functions have the name '{}'", function.path(), name));
  ToolFunction& added = out->functions.emplace_back(ToolFunction{name, "", false});
  LATTE_ASSIGN_OR_RETURN(added.strict, function.GetBoolOr("strict", false));
  FunctionParameters& readable = (*known)[name];
  if (!parameters) return {};
  if (!parameters->is_object())
    return InvalidArgument(parameters->path() + ": expected a JSON schema, which is an object");
  readable = ParametersOf(*parameters);
  added.parameters = parameters->Text();
  return {};
}

bool ApiTools::constrained() const {
  return active() && (forced() || std::ranges::any_of(functions, &ToolFunction::strict));
}

std::vector<ToolFunction> ApiTools::Choosable() const {
  if (choice != Choice::kNamed) return functions;
  std::vector<ToolFunction> out;
  std::ranges::copy_if(functions, std::back_inserter(out),
                       [&](const ToolFunction& f) { return f.name == function; });
  return out;
}

Status CheckToolList(const Json& value) {
  if (!value.is_array()) return InvalidArgument(value.path() + ": expected an array of tools");
  if (value.size() > kMaxTools)
    return InvalidArgument(fmt::format("{}: expected at most {} tools, found {}", value.path(),
                                       kMaxTools, value.size()));
  return {};
}

Status ReadTools(const Json& value, ApiTools* out) {
  LATTE_RETURN_IF_ERROR(CheckToolList(value));
  if (value.size() == 0) return {};
  auto known = std::make_shared<KnownFunctions>();
  for (size_t i = 0; i < value.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const Json function, FunctionOf(value.At(i)));
    LATTE_RETURN_IF_ERROR(AddFunction(function, function.Find("parameters"), out, known.get()));
  }
  out->known = std::move(known);
  out->json = value.Text();
  return {};
}

Status ReadToolChoice(const Json& value, ApiTools* out) {
  using Choice = ApiTools::Choice;
  out->choice_path = value.path();
  if (!value.is_object() && !value.is_string())
    return InvalidArgument(value.path() +
                           ": expected none, auto, required or a function, found another type");
  LATTE_ASSIGN_OR_RETURN(const std::string choice, value.is_object()
                                                       ? value.GetStringOr("type", "function")
                                                       : value.AsString());
  LATTE_ASSIGN_OR_RETURN(const bool one, value.GetBoolOr("disable_parallel_tool_use", false));
  if (one) out->parallel = false;
  if (choice == "auto") {
    out->choice = Choice::kAuto;
  } else if (choice == "none") {
    out->choice = Choice::kNone;
  } else if (choice == "required" || choice == "any") {
    out->choice = Choice::kRequired;
  } else if (!value.is_object()) {
    return InvalidArgument(fmt::format(
        "{}: expected none, auto, required or a function, found '{}'", value.path(), choice));
  } else if (choice != "function" && choice != "tool" && choice != "custom") {
    return Unsupported(
        fmt::format("{}: a choice of type '{}' is not supported; expected type auto, none, any, "
                    "required, function, tool or custom",
                    value.path(), choice));
  } else {
    const std::optional<Json> inner = value.Find(choice);
    LATTE_ASSIGN_OR_RETURN(out->function, (inner ? *inner : value).GetString("name"));
    LATTE_ASSIGN_OR_RETURN(out->name_space, value.GetStringOr("namespace", ""));
    out->choice = Choice::kNamed;
  }
  return {};
}

Status CheckTools(const ApiTools& tools, const ChatPromptBuilder& chat) {
  using Choice = ApiTools::Choice;
  if (tools.forced() && !tools.json)
    return InvalidArgument(tools.choice_path + ": expected tools to choose from, found none");
  if (tools.choice == Choice::kNamed && !tools.names.contains(tools.function))
    return InvalidArgument(
        fmt::format("{}: the tools have no function '{}'", tools.choice_path, tools.function));
  if (!tools.active()) return {};
  if (!chat.tool_format() || !chat.shows_tools())
    return Unsupported(
        fmt::format("tools: this model's chat format ({}) {}; give a template that has tools with "
                    "--chat-template, or describe them in a message",
                    ChatFormatName(chat.format()),
                    chat.tool_format() ? "does not show tools to the model"
                                       : "has no calls of functions that Latte can read"));
  return {};
}

}  // namespace latte
