// RMSNorm and quantisation of activations to int8.
#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {

bool Supports(const RmsNormOp::Shape& s) { return IsPlain(s.w); }
bool Supports(const QuantizeRowsOp::Shape&) { return true; }

void RmsNorm(const Target& target, const RmsNormOp::Params& p, const Exec& exec) {
  const RmsNormOp::Shape s = RmsNormOp::ShapeOf(p);
  const int64_t rows = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(s.d, 1));
  exec.threads->ParallelFor(CeilDiv(s.m, rows), [&](int64_t task) {
    for (int64_t m = task * rows; m < std::min(s.m, (task + 1) * rows); ++m)
      target.rms_norm({p.x.Row<float>(m), p.w.data, s.w, p.y.Row<float>(m), s.d, p.eps});
  });
}

void QuantizeRows(const Target& target, const QuantizeRowsOp::Params& p, const Exec& exec) {
  const QuantizeRowsOp::Shape s = QuantizeRowsOp::ShapeOf(p);
  const int64_t rows = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(s.k, 1));
  exec.threads->ParallelFor(CeilDiv(s.m, rows), [&](int64_t task) {
    for (int64_t m = task * rows; m < std::min(s.m, (task + 1) * rows); ++m)
      target.quantize_row(
          {p.x.Row<float>(m), p.y.Row<int8_t>(m), p.scale.Row<float>(m), s.k, s.group});
  });
}

}  // namespace latte::cpu
