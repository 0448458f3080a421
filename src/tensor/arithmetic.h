// The types that activations may have, as flags name them.
#pragma once

#include <string_view>

#include "latte/status.h"

#include "src/tensor/dtype.h"

namespace latte {

// "f32", "bf16" or "f16" from a flag. Errors: kInvalidArgument listing the accepted names.
[[nodiscard]] Result<DType> ParseArithmetic(std::string_view text);

}  // namespace latte
