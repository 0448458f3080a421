// The text of an op's shape for users: the properties that select a kernel.
#pragma once

#include <string>

#include "src/kernels/ops.h"

namespace latte {

// "bf16 × q4_k, N = 512, K = 2048"; empty for ops whose kernels take every shape.
std::string ShapeText(const GemmOp::Shape& s);
std::string ShapeText(const GemmTOp::Shape& s);
std::string ShapeText(const ExpertGemmOp::Shape& s);
std::string ShapeText(const MlaDecodeOp::Shape& s);
std::string ShapeText(const IndexTopKOp::Shape& s);
std::string ShapeText(const MhaOp::Shape& s);
std::string ShapeText(const AppendOp::Shape& s);
std::string ShapeText(const NormRopeAppendOp::Shape& s);
std::string ShapeText(const GatherPagesOp::Shape& s);
std::string ShapeText(const GatherOp::Shape& s);
template <class Shape>
std::string ShapeText(const Shape&) {
  return "";
}

}  // namespace latte
