#include <cmath>

#include "src/kernels/ref/ref.h"

namespace latte::ref {
namespace {

const std::byte* RowOf(const TensorView& t, int64_t i, int64_t j) {
  return t.data + (i * t.stride[0] + j * t.stride[1]) * SizeOf(t.dtype);
}
float* FloatRow(const TensorView& t, int64_t i, int64_t j) {
  return t.Ptr<float>() + i * t.stride[0] + j * t.stride[1];
}

// Element (n, k) of W[b] as it is meant: the stored value times its block's scale, rounded to f32
// as a dequantised weight would be.
double Weight(const TensorView& w, const BlockScale& scale, int64_t b, int64_t n, int64_t k) {
  const float value = Load(RowOf(w, b, n), w.dtype, k);
  return static_cast<double>(scale.scale.empty() ? value : value * scale.At(b, n, k));
}

}  // namespace

void Linear(const LinearOp::Params& p, const Exec& exec) {
  const LinearOp::Shape s = LinearOp::ShapeOf(p);
  exec.threads->ParallelFor(s.b * s.n, [&](int64_t task) {
    const int64_t b = task / s.n;
    const int64_t n = task % s.n;
    for (int64_t m = 0; m < s.m; ++m) {
      const std::byte* x = RowOf(p.x, b, m);
      double sum = p.bias.empty() ? 0.0 : static_cast<double>(p.bias.Ptr<float>()[n]);
      for (int64_t k = 0; k < s.k; ++k)
        sum += static_cast<double>(Load(x, s.x, k)) * Weight(p.w, p.w_scale, b, n, k);
      FloatRow(p.y, b, m)[n] = static_cast<float>(sum);
    }
  });
}

void LinearT(const LinearTOp::Params& p, const Exec& exec) {
  const LinearTOp::Shape s = LinearTOp::ShapeOf(p);
  exec.threads->ParallelFor(s.b * s.m, [&](int64_t task) {
    const int64_t b = task / s.m;
    const int64_t m = task % s.m;
    const std::byte* x = RowOf(p.x, b, m);
    float* y = FloatRow(p.y, b, m);
    for (int64_t k = 0; k < s.k; ++k) {
      double sum = 0;
      for (int64_t n = 0; n < s.n; ++n)
        sum += static_cast<double>(Load(x, s.x, n)) * Weight(p.w, p.w_scale, b, n, k);
      y[k] = static_cast<float>(sum);
    }
  });
}

void RmsNorm(const RmsNormOp::Params& p, const Exec& exec) {
  const int64_t d_count = p.x.shape[1];
  exec.threads->ParallelFor(p.x.shape[0], [&](int64_t m) {
    const float* x = p.x.Row<float>(m);
    float* y = p.y.Row<float>(m);
    double squares = 0;
    for (int64_t d = 0; d < d_count; ++d)
      squares += static_cast<double>(x[d]) * static_cast<double>(x[d]);
    const double inverse =
        1.0 / std::sqrt(squares / static_cast<double>(d_count) + static_cast<double>(p.eps));
    for (int64_t d = 0; d < d_count; ++d)
      y[d] = static_cast<float>(static_cast<double>(x[d]) * inverse *
                                static_cast<double>(Load(p.w.data, p.w.dtype, d)));
  });
}

void Rope(const RopeOp::Params& p, const Exec& exec) {
  const auto [m_count, g_count, r_count, interleaved] = RopeOp::ShapeOf(p);
  const int64_t half = r_count / 2;
  const int64_t step = interleaved ? 2 : 1;  // from one pair to the next
  const int64_t apart = interleaved ? 1 : half;
  const int64_t groups = g_count;
  exec.threads->ParallelFor(m_count, [&](int64_t m) {
    const float* cos = p.cos.Row<float>(m);
    const float* sin = p.sin.Row<float>(m);
    for (int64_t g = 0; g < groups; ++g) {
      float* x = p.x.Ptr<float>() + m * p.x.stride[0] + g * p.x.stride[1];
      for (int64_t j = 0; j < half; ++j) {
        float& a = x[j * step];
        float& b = x[j * step + apart];
        const float rotated = a * cos[j] - b * sin[j];
        b = a * sin[j] + b * cos[j];
        a = rotated;
      }
    }
  });
}

void SiluMul(const SiluMulOp::Params& p, const Exec& exec) {
  const int64_t f_count = p.gate.shape[1];
  exec.threads->ParallelFor(p.gate.shape[0], [&](int64_t m) {
    const float* gate = p.gate.Row<float>(m);
    const float* up = p.up.Row<float>(m);
    float* y = p.y.Row<float>(m);
    for (int64_t f = 0; f < f_count; ++f) y[f] = gate[f] / (1.0f + std::exp(-gate[f])) * up[f];
  });
}

void Add(const AddOp::Params& p, const Exec& exec) {
  const int64_t d_count = p.x.shape[1];
  exec.threads->ParallelFor(p.x.shape[0], [&](int64_t m) {
    const float* x = p.x.Row<float>(m);
    float* y = p.y.Row<float>(m);
    for (int64_t d = 0; d < d_count; ++d) y[d] += x[d];
  });
}

void Gather(const GatherOp::Params& p, const Exec& exec) {
  const int64_t d_count = p.y.shape[1];
  exec.threads->ParallelFor(p.y.shape[0], [&](int64_t m) {
    const std::byte* x = p.x.RowBytes(p.ids[static_cast<size_t>(m)]);
    float* y = p.y.Row<float>(m);
    for (int64_t d = 0; d < d_count; ++d) y[d] = Load(x, p.x.dtype, d);
  });
}

void Cast(const CastOp::Params& p, const Exec& exec) {
  constexpr int64_t kBlock = 1 << 14;  // elements per task: some microseconds of work
  const int64_t elements = p.x.elements();
  exec.threads->ParallelFor((elements + kBlock - 1) / kBlock, [&](int64_t task) {
    const int64_t begin = task * kBlock;
    RoundTo16(p.x.Ptr<float>() + begin, std::min(kBlock, elements - begin), p.y.dtype,
              p.y.Ptr<uint16_t>() + begin);
  });
}

}  // namespace latte::ref
