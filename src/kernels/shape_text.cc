#include "src/kernels/shape_text.h"

#include <fmt/format.h>

namespace latte {
namespace {

std::string ProductText(DType x, DType w, int64_t n, int64_t k, int64_t scale_group) {
  const std::string scales =
      scale_group == 0 ? "" : fmt::format(", scales of {} columns", scale_group);
  return fmt::format("{} × {}, N = {}, K = {}{}", Name(x), Name(w), n, k, scales);
}
std::string CacheText(DType cache, CacheFormat kind) {
  return fmt::format("a cache of {}", Name(CacheDType{cache, kind}));
}

}  // namespace

std::string ShapeText(const GemmOp::Shape& s) {
  return ProductText(s.x, s.w, s.n, s.k, s.scale_group);
}
std::string ShapeText(const GemmTOp::Shape& s) {
  return ProductText(s.x, s.w, s.n, s.k, s.scale_group);
}
std::string ShapeText(const ExpertGemmOp::Shape& s) {
  return ProductText(s.x, s.w, s.n, s.k, s.scale_group);
}
std::string ShapeText(const MlaDecodeOp::Shape& s) {
  return fmt::format("{}, C = {}, R = {}", CacheText(s.cache, s.kind), s.c, s.r);
}
std::string ShapeText(const IndexTopKOp::Shape& s) { return CacheText(s.cache, s.kind); }
std::string ShapeText(const MhaOp::Shape& s) { return fmt::format("V = {}", s.v); }
std::string ShapeText(const AppendOp::Shape& s) { return CacheText(s.cache, s.kind); }
std::string ShapeText(const NormRopeAppendOp::Shape& s) { return CacheText(s.cache, s.kind); }
std::string ShapeText(const GatherPagesOp::Shape& s) { return CacheText(s.cache, s.kind); }
std::string ShapeText(const GatherOp::Shape& s) {
  return fmt::format("{} to {}", Name(s.x), Name(s.y));
}

}  // namespace latte
