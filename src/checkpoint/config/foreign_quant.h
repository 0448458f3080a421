// Checkpoints in quantised formats of other programs that Latte does not read. config.json or the
// names of the tensors show which program made them; the error says which copy to use instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

// Errors: kUnsupported naming key and program if `config` shows a foreign quantisation.
[[nodiscard]] Status CheckNotForeign(const Json& config);

// The program that made a checkpoint with the tensor `name`; nullopt if the name does not tell.
std::optional<std::string_view> ToolOfTensor(std::string_view name);

// "take the original …": the end of an error message.
std::string_view CopyToTake();

}  // namespace latte
