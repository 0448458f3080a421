// The fields of a request about tools: functions that the model may call. Latte calls no function:
// it writes them into the prompt and parses the calls in the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/chat/prompt.h"
#include "src/chat/tools/tool_call_parser.h"
#include "src/chat/tools/tool_grammar.h"

namespace latte {

struct ApiTools {
  std::optional<std::string> json;  // "tools" as the prompt shows them; none: no tools
  std::set<std::string> names;      // of their functions
  std::vector<ToolFunction> functions;
  std::shared_ptr<const KnownFunctions> known;  // the same, for the reader of calls
  // none: tools are not shown, and calls are not read. required: some function must be called;
  // named: `function`.
  enum class Choice : uint8_t { kAuto, kNone, kRequired, kNamed } choice = Choice::kAuto;
  std::string path = "tools";
  std::string choice_path;
  std::string function;
  std::string name_space;  // of `function`, where an API has them
  bool parallel = true;    // false: only the first call of an answer counts

  bool active() const { return json && choice != Choice::kNone; }
  bool forced() const { return choice == Choice::kRequired || choice == Choice::kNamed; }
  // Whether calls must match a grammar: some function is strict, or one must be called.
  bool constrained() const;
  // The functions that may be called.
  std::vector<ToolFunction> Choosable() const;
};

// Each reads one field.
// Errors: kInvalidArgument and kCorrupt (of Json) naming the field; kUnsupported for tools that are
// not functions.
[[nodiscard]] Status ReadTools(const Json& value, ApiTools* out);
// The forms of all APIs are understood: "auto", "none", "required", "any", the same as {"type": …},
// and one function as {"type": "function", "function": {"name": …}}, with "name" in the object
// itself, or with type tool or custom. "disable_parallel_tool_use" in the object counts.
[[nodiscard]] Status ReadToolChoice(const Json& value, ApiTools* out);

// For the readers of other APIs, which set ApiTools::json and known themselves.
// Errors: kInvalidArgument for what is no array, or too long.
[[nodiscard]] Status CheckToolList(const Json& value);
// Adds a function. `function`: the object with the key "name"; `parameters`: their JSON schema.
// Errors: kInvalidArgument and kCorrupt (of Json) naming the field, also for a name given twice.
[[nodiscard]] Status AddFunction(const Json& function, const std::optional<Json>& parameters,
                                 ApiTools* out, KnownFunctions* known);

// Checks the fields against each other and against the model.
// Errors: kInvalidArgument for a choice that the tools lack; kUnsupported for a model whose chat
// format shows no tools or whose calls Latte cannot read.
[[nodiscard]] Status CheckTools(const ApiTools& tools, const ChatPromptBuilder& chat);

}  // namespace latte
