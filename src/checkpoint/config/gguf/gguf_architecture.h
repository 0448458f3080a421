// The architectures of GGUF files: which are read, and why the others are refused.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/checkpoint/gguf/gguf_metadata.h"

namespace latte {

// The architectures that are read.
inline constexpr std::string_view kDeepseek2 = "deepseek2";    // V2 to R1 and their kin
inline constexpr std::string_view kDeepseek32 = "deepseek32";  // V3.2: with an indexer
inline constexpr std::string_view kGlmDsa = "glm-dsa";         // GLM-5 to GLM-5.3
inline constexpr std::string_view kMistral4 = "mistral4";
inline constexpr std::string_view kMiniCpm3Gguf = "minicpm3";

// general.architecture, which is one of the above.
// Errors: kUnsupported naming another architecture, or a file that is no model, and what to take
// instead; kCorrupt if the key is missing or no string.
[[nodiscard]] Result<std::string> GgufArchitecture(const GgufMetadata& metadata);

}  // namespace latte
