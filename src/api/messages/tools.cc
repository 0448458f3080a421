#include "src/api/messages/tools.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/json_text.h"
#include "src/api/messages/members.h"

namespace latte {
namespace {

Status CheckType(const Json& tool) {
  if (!tool.is_object()) return InvalidArgument(tool.path() + ": expected an object");
  LATTE_ASSIGN_OR_RETURN(const std::string type, tool.GetStringOr("type", "custom"));
  if (type == "custom") return {};
  return Unsupported(
      fmt::format("{}: tools of type '{}' are not supported: Latte runs no tools, and the model "
                  "knows no schema of this one; leave it out, or give a tool with an input_schema",
                  tool.path(), type));
}

// The function as prompts show it, in the format of chats. The other members of a tool tell
// Anthropic's servers how to cache, load and stream it.
Status AppendTool(const Json& tool, ApiTools* out, KnownFunctions* known, std::string* json) {
  LATTE_RETURN_IF_ERROR(CheckType(tool));
  LATTE_RETURN_IF_ERROR(CheckMembers(
      tool, {"type", "name", "description", "input_schema", "cache_control", "strict",
             "allowed_callers", "defer_loading", "eager_input_streaming", "input_examples"}));
  LATTE_ASSIGN_OR_RETURN(const Json schema, tool.Get("input_schema"));
  LATTE_RETURN_IF_ERROR(AddFunction(tool, schema, out, known));
  LATTE_ASSIGN_OR_RETURN(const std::string name, tool.GetString("name"));
  *json += R"({"type":"function","function":{"name":)";
  AppendJsonString(name, json);
  if (tool.Find("description")) {
    LATTE_ASSIGN_OR_RETURN(const std::string description, tool.GetString("description"));
    *json += R"(,"description":)";
    AppendJsonString(description, json);
  }
  *json += R"(,"parameters":)" + schema.Text() + "}}";
  return {};
}

}  // namespace

Status ReadAnthropicTools(const Json& value, ApiTools* out) {
  LATTE_RETURN_IF_ERROR(CheckToolList(value));
  if (value.size() == 0) return {};
  auto known = std::make_shared<KnownFunctions>();
  std::string json = "[";
  for (size_t i = 0; i < value.size(); ++i) {
    if (i > 0) json += ',';
    LATTE_RETURN_IF_ERROR(AppendTool(value.At(i), out, known.get(), &json));
  }
  out->known = std::move(known);
  out->json = json + "]";
  return {};
}

}  // namespace latte
