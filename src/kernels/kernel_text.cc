#include "src/kernels/kernel_text.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/ranges.h>

#include "src/kernels/rule_text.h"
#include "src/tensor/cache_format.h"

namespace latte {
namespace {

// Sizes that no kernel refuses: M = 1, other sizes powers of two.
constexpr int64_t kWidth = 512;
constexpr int64_t kScaleGroup = 128;

template <class Shape, class F>
bool TakesSomeScales(const F& supports, Shape s) {
  for (const int64_t group : {int64_t{0}, kScaleGroup, kWidth}) {
    s.scale_group = group;
    if (supports(s)) return true;
  }
  return false;
}

bool Multiplies(const Kernel<GemmOp>& kernel, DType x, DType w) {
  const int64_t x_group = x == DType::kI8 ? kScaleGroup : 0;
  return TakesSomeScales(kernel.supports, GemmOp::Shape{1, 1, kWidth, kWidth, x, w, x_group});
}
bool Multiplies(const Kernel<GemmTOp>& kernel, DType x, DType w) {
  return TakesSomeScales(kernel.supports, GemmTOp::Shape{1, 1, kWidth, kWidth, x, w});
}

// The names of the types of weights for which `has` holds: "any", "bf16, i8", "any but blocks".
template <class F>
std::string WeightsText(const F& has) {
  bool any_block = false;
  bool all_blocks = true;
  bool all_others = true;
  std::vector<std::string_view> names;
  for (const DTypeInfo& type : kDTypes) {
    if (!IsWeight(type.dtype)) continue;
    const bool found = has(type.dtype);
    if (found) names.push_back(type.name);
    if (IsBlocks(type.dtype)) {
      any_block = any_block || found;
      all_blocks = all_blocks && found;
    } else {
      all_others = all_others && found;
    }
  }
  if (all_others && all_blocks) return "any";
  if (all_others && !any_block) return "any but blocks";
  return fmt::format("{}", fmt::join(names, ", "));
}

// Activations that are multiplied by the same weights share a part: "f32, bf16 × any; i8 × i8".
template <class Op>
std::string ProductTypes(const Kernel<Op>& kernel) {
  if (kernel.isa == Isa::kRef) return "";
  struct Part {
    std::string x, w;
  };
  std::vector<Part> parts;
  for (const DType x : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8}) {
    const std::string w = WeightsText([&](DType type) { return Multiplies(kernel, x, type); });
    if (w.empty()) continue;
    const auto same = std::ranges::find(parts, w, &Part::w);
    if (same == parts.end())
      parts.push_back({std::string(Name(x)), w});
    else
      same->x += fmt::format(", {}", Name(x));
  }
  std::string out;
  for (const Part& part : parts)
    out += fmt::format("{}{} × {}", out.empty() ? "" : "; ", part.x, part.w);
  return out;
}

// The arithmetic of a kernel and the caches that it reads. shape(cache).
template <class Op, class F>
std::string AttentionTypes(const Kernel<Op>& kernel, const F& shape) {
  if (kernel.isa == Isa::kRef) return "";
  std::vector<std::string_view> names;
  bool all = true;
  for (const CacheDType& cache : CacheDTypes()) {
    if (kernel.supports(shape(cache)))
      names.push_back(Name(cache));
    else
      all = false;
  }
  return fmt::format("{} × {}", kernel.arithmetic,
                     all ? "any" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

std::string TypesText(const Kernel<GemmOp>& kernel) { return ProductTypes(kernel); }
std::string TypesText(const Kernel<GemmTOp>& kernel) { return ProductTypes(kernel); }

std::string TypesText(const Kernel<MlaDecodeOp>& kernel) {
  return AttentionTypes(kernel, [](const CacheDType& cache) {
    return MlaDecodeOp::Shape{1, 1, kWidth, 64, 64, cache.dtype, cache.kind};
  });
}
std::string TypesText(const Kernel<IndexTopKOp>& kernel) {
  return AttentionTypes(kernel, [](const CacheDType& cache) {
    return IndexTopKOp::Shape{1, 1, kWidth, 1, 64, cache.dtype, cache.kind};
  });
}
std::string TypesText(const Kernel<MhaOp>& kernel) { return std::string(kernel.arithmetic); }

std::string WhenText(Clause (*limits)(), Clause (*is_preferred)(), Clause (*is_slow)(),
                     std::string_view remark) {
  const auto of = [](Clause (*text)()) { return text == nullptr ? Clause(true) : text(); };
  const Clause fast = is_slow == nullptr ? Clause(true) : !is_slow();
  const std::string out = (of(limits) && of(is_preferred) && fast).text();
  return fmt::format("{}{}{}", out, out.empty() || remark.empty() ? "" : "; ", remark);
}

}  // namespace latte
