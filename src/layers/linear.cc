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

// A matrix as a batch of one.
TensorView Batched(const TensorView& m) {
  TensorView out = m;
  out.rank = 3;
  out.shape = {1, m.shape[0], m.shape[1]};
  out.stride = {m.shape[0] * m.stride[0], m.stride[0], m.stride[1]};
  return out;
}

GemmProblem ProblemOf(const Product& p) {
  GemmProblem problem;
  const bool int8 = p.x.plain.empty() || (!p.x.codes.empty() && p.linear->takes_int8());
  problem.x = Batched(int8 ? p.x.codes : p.x.plain);
  problem.w = Batched(p.linear->matrix.weight);
  problem.w_scale = p.linear->Scale();
  problem.bias = p.linear->bias.view();
  problem.y = Batched(p.y);
  if (int8) {
    problem.x_scale = Batched(p.x.scale);
    problem.x_group = kActivationGroup;
  }
  if (p.gate != nullptr) {
    problem.gate = Batched(p.gate->matrix.weight);
    problem.gate_scale = p.gate->Scale();
  }
  return problem;
}

// Whether one call may compute both: one kernel is selected for all parts of a call.
bool Alike(const GemmProblem& a, const GemmProblem& b) {
  const GemmOp::Shape s = GemmOp::ShapeOf(a);
  const GemmOp::Shape t = GemmOp::ShapeOf(b);
  const bool whole_rows = s.scale_group == s.k && t.scale_group == t.k;
  return s.x == t.x && s.w == t.w && s.x_group == t.x_group &&
         (s.scale_group == t.scale_group || whole_rows);
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
  std::vector<GemmProblem> problems;
  for (const Product& p : products)
    if (p.y.elements() > 0) problems.push_back(ProblemOf(p));
  for (auto begin = problems.begin(); begin != problems.end();) {
    const auto end = std::stable_partition(
        begin, problems.end(), [first = *begin](const GemmProblem& p) { return Alike(first, p); });
    Run<GemmOp>({{begin, end}}, step.exec);
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
