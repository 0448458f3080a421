// Checkpoints that other programs quantised in ways that are not read here: what made them, told by
// config.json or by the names of their tensors, and which copy to take instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

// Nothing when `config` shows no foreign quantisation. Errors: kUnsupported naming key and tool.
[[nodiscard]] Status CheckNotForeign(const Json& config);

// What made a checkpoint that has the tensor `name`; nothing when it is no mark of any tool.
std::optional<std::string_view> ToolOfTensor(std::string_view name);

// "take the original …": ends a message.
std::string_view CopyToTake();

}  // namespace latte
