// RMSNorm, SiLU gate and quantisation of activations to int8.
#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {
namespace {

// Elements per task: some microseconds of work.
constexpr int64_t kElements = 1 << 14;

}  // namespace

bool Supports(const RmsNormOp::Shape& s) { return IsPlain(s.w); }
bool Supports(const SiluMulOp::Shape&) { return true; }
bool Supports(const QuantizeRowsOp::Shape&) { return true; }

template <const Target& kTarget>
void Launch<kTarget>::RmsNorm(const RmsNormOp::Params& p, const Exec& exec) {
  const RmsNormOp::Shape s = RmsNormOp::ShapeOf(p);
  const int64_t rows = std::max<int64_t>(1, kElements / std::max<int64_t>(s.d, 1));
  exec.threads->ParallelFor(CeilDiv(s.m, rows), [&](int64_t task) {
    for (int64_t m = task * rows; m < std::min(s.m, (task + 1) * rows); ++m)
      kTarget.rms_norm({p.x.Row<float>(m), p.w.data, s.w, p.y.Row<float>(m), s.d, p.eps});
  });
}

template <const Target& kTarget>
void Launch<kTarget>::SiluMul(const SiluMulOp::Params& p, const Exec& exec) {
  const int64_t count = p.y.elements();
  exec.threads->ParallelFor(CeilDiv(count, kElements), [&](int64_t task) {
    const int64_t begin = task * kElements;
    kTarget.silu_mul({p.gate.Ptr<float>() + begin, p.up.Ptr<float>() + begin,
                      p.y.Ptr<float>() + begin, std::min(kElements, count - begin)});
  });
}

template <const Target& kTarget>
void Launch<kTarget>::QuantizeRows(const QuantizeRowsOp::Params& p, const Exec& exec) {
  const QuantizeRowsOp::Shape s = QuantizeRowsOp::ShapeOf(p);
  const int64_t rows = std::max<int64_t>(1, kElements / std::max<int64_t>(s.k, 1));
  exec.threads->ParallelFor(CeilDiv(s.m, rows), [&](int64_t task) {
    for (int64_t m = task * rows; m < std::min(s.m, (task + 1) * rows); ++m)
      kTarget.quantize_row(
          {p.x.Row<float>(m), p.y.Row<int8_t>(m), p.scale.Row<float>(m), s.k, s.group});
  });
}

template void Launch<kAvx2>::RmsNorm(const RmsNormOp::Params&, const Exec&);
template void Launch<kAvx512>::RmsNorm(const RmsNormOp::Params&, const Exec&);
template void Launch<kAvx2>::SiluMul(const SiluMulOp::Params&, const Exec&);
template void Launch<kAvx512>::SiluMul(const SiluMulOp::Params&, const Exec&);
template void Launch<kAvx2>::QuantizeRows(const QuantizeRowsOp::Params&, const Exec&);
template void Launch<kAvx512>::QuantizeRows(const QuantizeRowsOp::Params&, const Exec&);

}  // namespace latte::cpu
