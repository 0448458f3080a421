#include "src/tensor/dtype.h"

#include <fmt/format.h>

namespace latte {

std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF8E4M3:
      return "f8_e4m3";
    case DType::kF8E4M3Fnuz:
      return "f8_e4m3fnuz";
    case DType::kI8:
      return "i8";
    case DType::kU8:
      return "u8";
    case DType::kU4:
      return "u4";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kBool:
      return "bool";
  }
  return "?";
}

Result<DType> ParseArithmetic(std::string_view text) {
  if (text == "f32") return DType::kF32;
  if (text == "bf16") return DType::kBF16;
  if (text == "f16") return DType::kF16;
  return InvalidArgument(fmt::format("--dtype: expected f32, bf16 or f16, found '{}'", text));
}

}  // namespace latte
