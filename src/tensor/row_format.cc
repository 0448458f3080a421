#include "src/tensor/row_format.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/base/math.h"

namespace latte {
namespace {

constexpr std::array<std::pair<std::string_view, CacheDType>, 7> kNames = {{
    {"bf16", {DType::kBF16, RowKind::kPlain}},
    {"f16", {DType::kF16, RowKind::kPlain}},
    {"f32", {DType::kF32, RowKind::kPlain}},
    {"fp8", {DType::kU8, RowKind::kF8}},
    {"fp8-dense", {DType::kU8, RowKind::kF8Dense}},
    {"int8", {DType::kU8, RowKind::kI8}},
    {"q6", {DType::kU8, RowKind::kQ6}},
}};

}  // namespace

RowLayout LayoutOf(RowKind kind, int64_t c, int64_t r) {
  switch (kind) {
    case RowKind::kF8: {
      const int64_t rope_at = c + 4 * CeilDiv(c, kF8Group);
      return {rope_at, c, rope_at + 2 * r};
    }
    case RowKind::kI8:
      return {c, c + 2 * r, c + 2 * r + 8};
    case RowKind::kQ6: {
      const int64_t rope_at = CeilDiv(c, kQ6Chunk) * kQ6ChunkBytes;
      const int64_t scales_at = rope_at + r + CeilDiv(r, int64_t{2});
      return {rope_at, scales_at, scales_at + 2 * (CeilDiv(c, kQ6Group) + 1)};
    }
    case RowKind::kF8Dense:
    case RowKind::kPlain:
      break;
  }
  return {c, c + r, c + r};
}

std::string_view Name(CacheDType dtype) {
  for (const auto& [name, known] : kNames)
    if (known == dtype) return name;
  return "?";
}

Result<CacheDType> ParseCacheDType(std::string_view text) {
  for (const auto& [name, known] : kNames)
    if (text == name) return known;
  return InvalidArgument(fmt::format(
      "--cache-dtype: expected bf16, f16, f32, fp8, fp8-dense, int8 or q6, found '{}'", text));
}

}  // namespace latte
