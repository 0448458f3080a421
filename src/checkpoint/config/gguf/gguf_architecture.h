// The architectures of GGUF files: which are read, and why the others are refused.
#pragma once

#include <string>

#include "latte/status.h"

#include "src/checkpoint/gguf/gguf_metadata.h"

namespace latte {

// general.architecture, which is one that is read: "deepseek2".
// Errors: kUnsupported naming another architecture, or a file that is no model, and what to take
// instead; kCorrupt if the key is missing or no string.
[[nodiscard]] Result<std::string> GgufArchitecture(const GgufMetadata& metadata);

}  // namespace latte
