// The types of tensors in GGUF files: the supported types, and alternatives to the others.
#pragma once

#include <cstdint>
#include <string_view>

#include "latte/status.h"

namespace latte {

// A type that is read. Rows are made of blocks.
struct GgufType {
  uint32_t number;        // in the file
  std::string_view name;  // "Q4_K"
  int64_t values;         // of a block
  int64_t bytes;          // of a block
};

// Errors: kUnsupported for a known type that is not read, with its name and what to take instead;
// kCorrupt for a number that no known program writes.
[[nodiscard]] Result<const GgufType*> FindGgufType(uint32_t number);

// Why files of a quant, such as "UD-IQ2_M", have types that are not read, and what to take instead.
// Empty: their name does not say so.
std::string_view WhyQuantIsRefused(std::string_view quant);

}  // namespace latte
