#include "src/layers/linear.h"

#include <algorithm>

#include "src/base/math.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

bool TakesInt8(const Linear& linear, const StepContext& step) {
  return linear.takes_int8() && step.int8_activations && step.arithmetic != DType::kF32;
}

}  // namespace

BlockScale Linear::Scale(int64_t first_row, int64_t batch_rows) const {
  return {.scale = matrix.scale,
          .rows = matrix.block_rows,
          .columns = matrix.block_columns,
          .row_begin = matrix.row_begin + first_row,
          .column_begin = matrix.column_begin,
          .batch_rows = batch_rows,
          .zero = matrix.zero};
}

GemmInput InputFor(const Linear& linear, const Activations& x) {
  if (x.plain.empty() || (!x.codes.empty() && linear.takes_int8()))
    return {x.codes, x.scale, kActivationGroup};
  return {x.plain, TensorView(), 0};
}

GemmProblem ProblemOf(const Product& p) {
  const GemmInput in = InputFor(*p.linear, p.x);
  GemmProblem problem;
  problem.x = BatchOfOne(in.x);
  if (in.group > 0) problem.x_scale = BatchOfOne(in.scale);
  problem.x_group = in.group;
  problem.w = BatchOfOne(p.linear->matrix.weight);
  problem.w_scale = p.linear->Scale();
  problem.bias = p.linear->bias.view();
  problem.y = BatchOfOne(p.y);
  if (p.gate != nullptr) {
    problem.gate = BatchOfOne(p.gate->matrix.weight);
    problem.gate_scale = p.gate->Scale();
  }
  return problem;
}

bool InOneCall(const Product& a, const Product& b) {
  const auto type = [](const Product& p) {
    return TypeToRead(p.linear->matrix.weight,
                      p.gate == nullptr ? TensorView() : p.gate->matrix.weight);
  };
  const auto group = [](const Product& p) {
    return p.linear->matrix.scale.empty() ? 0 : p.linear->Scale().ScaleGroup(p.linear->inputs());
  };
  const bool whole_rows = group(a) == a.linear->inputs() && group(b) == b.linear->inputs();
  return type(a) == type(b) && (group(a) == group(b) || whole_rows);
}

Activations Activations::Rows(int64_t begin, int64_t end) const {
  const auto cut = [&](const TensorView& t) { return t.empty() ? t : t.Slice(0, begin, end); };
  return {cut(plain), cut(codes), cut(scale)};
}

Activations RoundActivations(const TensorView& x, std::span<const Linear* const> products,
                             StepContext& step) {
  Workspace& workspace = *step.workspace;
  const auto takes_int8 = [&](const Linear* linear) { return TakesInt8(*linear, step); };
  Activations out;
  if (std::any_of(products.begin(), products.end(), takes_int8)) {
    out.codes = workspace.Take(DType::kI8, {x.shape[0], x.shape[1]});
    out.scale = workspace.Take(DType::kF32, {x.shape[0], CeilDiv(x.shape[1], kActivationGroup)});
    Run<QuantizeRowsOp>({x, out.codes, out.scale, kActivationGroup}, step.exec);
  }
  if (products.size() > 0 && std::all_of(products.begin(), products.end(), takes_int8)) return out;
  out.plain = x;
  if (step.arithmetic == DType::kF32) return out;
  out.plain = workspace.Take(step.arithmetic, {x.shape[0], x.shape[1]});
  Run<CastOp>({x, out.plain}, step.exec);
  return out;
}

void Multiply(std::span<const Product> products, StepContext& step) {
  std::vector<Product> left;
  for (const Product& p : products)
    if (p.y.elements() > 0) left.push_back(p);
  std::vector<GemmProblem> problems;
  for (auto begin = left.begin(); begin != left.end();) {
    const auto end = std::stable_partition(begin, left.end(), [first = *begin](const Product& p) {
      return InputFor(*p.linear, p.x).x.dtype == InputFor(*first.linear, first.x).x.dtype &&
             InOneCall(p, first);
    });
    problems.clear();
    std::transform(begin, end, std::back_inserter(problems), ProblemOf);
    Run<GemmOp>({problems}, step.exec);
    begin = end;
  }
}

void Multiply(const Linear& linear, const Activations& x, const TensorView& y, StepContext& step) {
  const Product product{&linear, nullptr, x, y};
  Multiply({&product, 1}, step);
}

void Apply(const Linear& linear, const TensorView& x, const TensorView& y, StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  Multiply(linear, RoundActivations(x, {&linear}, step), y, step);
}

void MultiplyExactly(const Linear& linear, const TensorView& x, const TensorView& y,
                     StepContext& step) {
  Multiply(linear, {x, {}, {}}, y, step);
}

}  // namespace latte
