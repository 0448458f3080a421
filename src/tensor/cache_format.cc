#include "src/tensor/cache_format.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/base/math.h"

namespace latte {
namespace {

constexpr std::array<std::pair<std::string_view, CacheDType>, 7> kNames = {{
    {"bf16", {DType::kBF16, CacheFormat::kPlain}},
    {"f16", {DType::kF16, CacheFormat::kPlain}},
    {"f32", {DType::kF32, CacheFormat::kPlain}},
    {"fp8", {DType::kU8, CacheFormat::kF8}},
    {"fp8-dense", {DType::kU8, CacheFormat::kF8Dense}},
    {"int8", {DType::kU8, CacheFormat::kI8}},
    {"q6", {DType::kU8, CacheFormat::kQ6}},
}};

}  // namespace

CacheRowLayout LayoutOf(CacheFormat kind, int64_t c, int64_t r) {
  switch (kind) {
    case CacheFormat::kF8: {
      const int64_t rope_at = c + 4 * CeilDiv(c, kF8Group);
      return {rope_at, c, rope_at + 2 * r};
    }
    case CacheFormat::kI8:
      return {c, c + 2 * r, c + 2 * r + 8};
    case CacheFormat::kQ6: {
      const int64_t rope_at = CeilDiv(c, kQ6Chunk) * kQ6ChunkBytes;
      const int64_t scales_at = rope_at + r + CeilDiv(r, int64_t{2});
      return {rope_at, scales_at, scales_at + 2 * (CeilDiv(c, kQ6Group) + 1)};
    }
    case CacheFormat::kF8Dense:
    case CacheFormat::kPlain:
      break;
  }
  return {c, c + r, c + r};
}

std::vector<CacheDType> CacheDTypes() {
  std::vector<CacheDType> out;
  for (const auto& [name, dtype] : kNames) out.push_back(dtype);
  return out;
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
