#include "src/api/responses/tools.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr auto kLeftOut = std::to_array<std::string_view>(
    {"web_search", "image_generation", "tool_search", "local_shell"});

// web_search, web_search_preview, web_search_2025_08_26 …
bool IsLeftOut(std::string_view type) {
  return std::ranges::any_of(kLeftOut, [&](std::string_view known) {
    return type == known || (type.starts_with(known) && type[known.size()] == '_');
  });
}

// The form of a custom tool's input, in words: nothing enforces it.
Result<std::string> FormatInWords(const Json& tool) {
  const auto format = tool.Find("format");
  if (!format) return "";
  LATTE_ASSIGN_OR_RETURN(const std::string type, format->GetString("type"));
  if (type == "text") return "";
  if (type != "grammar")
    return InvalidArgument(
        fmt::format("{}: expected type text or grammar, found '{}'", format->path(), type));
  LATTE_ASSIGN_OR_RETURN(const std::string syntax, format->GetString("syntax"));
  LATTE_ASSIGN_OR_RETURN(const std::string definition, format->GetString("definition"));
  return fmt::format("\n\nThe input must match this {} grammar:\n{}", syntax, definition);
}

JsonOut InputParameter() {
  return {{"type", "object"},
          {"properties", {{"input", {{"type", "string"}}}}},
          {"required", JsonOut::array({"input"})}};
}

}  // namespace

std::string FunctionName(std::string_view name_space, std::string_view name) {
  return name_space.empty() ? std::string(name) : fmt::format("{}__{}", name_space, name);
}

Status ResponsesToolReader::Add(const Json& value) {
  LATTE_RETURN_IF_ERROR(CheckToolList(value));
  for (size_t i = 0; i < value.size(); ++i) LATTE_RETURN_IF_ERROR(AddTool(value.At(i), nullptr));
  return {};
}

Status ResponsesToolReader::AddTool(const Json& tool, const Json* name_space) {
  if (!tool.is_object()) return InvalidArgument(tool.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, tool.GetString("type"));
  if (type == "function") return AddFunctionTool(tool, name_space);
  if (type == "custom") return AddCustomTool(tool, name_space);
  if (type == "namespace" && name_space == nullptr) return AddNamespace(tool);
  if (IsLeftOut(type)) {
    notes_.push_back(fmt::format("tools: this server runs no tool of type '{}'", type));
    return {};
  }
  return Unsupported(
      fmt::format("{}: tools of type '{}' are not supported; tools of type function, "
                  "custom and namespace are",
                  tool.path(), type));
}

Status ResponsesToolReader::AddNamespace(const Json& tool) {
  LATTE_RETURN_IF_ERROR(tool.GetString("name"));
  LATTE_ASSIGN_OR_RETURN(const Json inner, tool.Get("tools"));
  LATTE_RETURN_IF_ERROR(CheckToolList(inner));
  for (size_t i = 0; i < inner.size(); ++i) LATTE_RETURN_IF_ERROR(AddTool(inner.At(i), &tool));
  LATTE_ASSIGN_OR_RETURN(JsonOut repeated, ParseToEdit(tool.Text(), tool.path()));
  repeated_.push_back(std::move(repeated));
  return {};
}

Status ResponsesToolReader::AddFunctionTool(const Json& tool, const Json* name_space) {
  LATTE_ASSIGN_OR_RETURN(const std::string name, tool.GetString("name"));
  LATTE_ASSIGN_OR_RETURN(const std::string description, tool.GetStringOr("description", ""));
  LATTE_ASSIGN_OR_RETURN(const bool strict, tool.GetBoolOr("strict", false));
  JsonOut function = {{"name", name}};
  if (tool.Find("description")) function["description"] = description;
  JsonOut parameters = nullptr;
  if (const auto given = tool.Find("parameters")) {
    if (!given->is_object())
      return InvalidArgument(given->path() + ": expected a JSON schema, which is an object");
    LATTE_ASSIGN_OR_RETURN(parameters, ParseToEdit(given->Text(), given->path()));
    function["parameters"] = parameters;
  }
  if (strict) function["strict"] = true;
  if (name_space == nullptr) {
    JsonOut repeated = {{"type", "function"}, {"name", name}};
    repeated["description"] = tool.Find("description") ? JsonOut(description) : JsonOut(nullptr);
    repeated["parameters"] = std::move(parameters);
    repeated["strict"] = strict;
    repeated_.push_back(std::move(repeated));
  }
  return AddShown(tool, name_space, std::move(function), false);
}

Status ResponsesToolReader::AddCustomTool(const Json& tool, const Json* name_space) {
  LATTE_ASSIGN_OR_RETURN(const std::string name, tool.GetString("name"));
  LATTE_ASSIGN_OR_RETURN(std::string description, tool.GetStringOr("description", ""));
  LATTE_ASSIGN_OR_RETURN(const std::string format, FormatInWords(tool));
  description += format;
  if (name_space == nullptr) {
    LATTE_ASSIGN_OR_RETURN(JsonOut repeated, ParseToEdit(tool.Text(), tool.path()));
    repeated_.push_back(std::move(repeated));
  }
  return AddShown(
      tool, name_space,
      {{"name", name}, {"description", std::move(description)}, {"parameters", InputParameter()}},
      true);
}

// `tool`: as the client wrote it; `function`: as the model sees it, but for the namespace.
Status ResponsesToolReader::AddShown(const Json& tool, const Json* name_space, JsonOut function,
                                     bool custom) {
  ResponsesTool named{function["name"].get<std::string>(), "", custom};
  if (name_space != nullptr) {
    LATTE_ASSIGN_OR_RETURN(named.name_space, name_space->GetString("name"));
    function["name"] = FunctionName(named.name_space, named.name);
  }
  // An error of the function as it is shown would name no field of the request.
  const std::string where = tool.path();
  Result<Json> shown = Json::Parse(Dump(function), where);
  if (!shown) return tl::unexpected(std::move(shown).error());
  const Status added = AddFunction(*shown, shown->Find("parameters"), &tools_, &known_);
  if (!added) return added;
  names_.emplace(function["name"].get<std::string>(), std::move(named));
  prompt_.push_back({{"type", "function"}, {"function", std::move(function)}});
  return {};
}

void ResponsesToolReader::Finish(ApiTools* out, ResponsesReply* reply) {
  reply->settings["tools"] = std::move(repeated_);
  reply->tools = std::move(names_);
  if (prompt_.empty()) return;
  out->names = std::move(tools_.names);
  out->functions = std::move(tools_.functions);
  out->known = std::make_shared<const KnownFunctions>(std::move(known_));
  out->json = Dump(prompt_);
}

Status ReadResponsesToolChoice(const Json& value, ApiTools* out, JsonOut* repeated) {
  using Choice = ApiTools::Choice;
  LATTE_RETURN_IF_ERROR(ReadToolChoice(value, out));
  switch (out->choice) {
    case Choice::kAuto:
      *repeated = "auto";
      return {};
    case Choice::kNone:
      *repeated = "none";
      return {};
    case Choice::kRequired:
      *repeated = "required";
      return {};
    case Choice::kNamed:
      break;
  }
  const bool custom = value.GetStringOr("type", "") == "custom";
  *repeated = {{"type", custom ? "custom" : "function"}, {"name", out->function}};
  if (!out->name_space.empty()) (*repeated)["namespace"] = out->name_space;
  out->function = FunctionName(out->name_space, out->function);
  return {};
}

}  // namespace latte
