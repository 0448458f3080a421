#include "src/tensor/arithmetic.h"

#include <fmt/format.h>

namespace latte {

Result<DType> ParseArithmetic(std::string_view text) {
  if (text == "f32") return DType::kF32;
  if (text == "bf16") return DType::kBF16;
  if (text == "f16") return DType::kF16;
  return InvalidArgument(fmt::format("--dtype: expected f32, bf16 or f16, found '{}'", text));
}

}  // namespace latte
