#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/kernels/ref/ref.h"
#include "src/tensor/dtype.h"

namespace latte::ref {
namespace {

const std::byte* RowOf(const TensorView& t, int64_t i, int64_t j) {
  return t.data + (i * t.stride[0] + j * t.stride[1]) * SizeOf(t.dtype);
}
float* FloatRow(const TensorView& t, int64_t i, int64_t j) {
  return t.Ptr<float>() + i * t.stride[0] + j * t.stride[1];
}

// Element (i, j) of W[b], scale included; the products are exact.
double WeightElement(const TensorView& w, const BlockScale& blocks, int64_t b, int64_t i,
                     int64_t j) {
  const auto value = static_cast<double>(LoadElement(RowOf(w, b, i), w.dtype, j));
  if (blocks.scale.empty()) return value;
  const int64_t row = (blocks.row_begin + b * blocks.batch_rows + i) / blocks.rows;
  const int64_t column = (blocks.column_begin + j) / blocks.columns;
  const int zero =
      blocks.zero.empty() ? InfoOf(w.dtype).zero : *(blocks.zero.Row<uint8_t>(row) + column);
  const float scale = LoadElement(blocks.scale.RowBytes(row), blocks.scale.dtype, column);
  return (value - zero) * static_cast<double>(scale);
}

double Activation(const GemmProblem& p, int64_t b, int64_t m, int64_t k) {
  const auto value = static_cast<double>(LoadElement(RowOf(p.x, b, m), p.x.dtype, k));
  return p.x_scale.empty() ? value
                           : value * static_cast<double>(FloatRow(p.x_scale, b, m)[k / p.x_group]);
}

// Column n of y.
void GemmColumn(const GemmProblem& p, int64_t b, int64_t n) {
  for (int64_t m = 0; m < p.x.shape[1]; ++m) {
    double sum = p.bias.empty() ? 0.0 : static_cast<double>(p.bias.Ptr<float>()[n]);
    double gate = 0;
    for (int64_t k = 0; k < p.x.shape[2]; ++k) {
      const double x = Activation(p, b, m, k);
      sum += x * WeightElement(p.w, p.w_scale, b, n, k);
      if (!p.gate.empty()) gate += x * WeightElement(p.gate, p.gate_scale, b, n, k);
    }
    if (!p.gate.empty()) sum *= gate / (1 + std::exp(-gate));
    FloatRow(p.y, b, m)[n] = static_cast<float>(sum);
  }
}

// x · 127/max|x| to the nearest integer: adding 1.5·2^23 leaves it in the last bits of the sum.
void QuantizeGroup(const float* x, int64_t count, int8_t* y, float* scale) {
  constexpr float kRound = 0x1.8p23f;
  int32_t largest = 0;  // of |x|, whose bits are ordered as the numbers are; NaN above infinity
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<int32_t>(x[i]) & 0x7fffffff);
  const auto most = std::bit_cast<float>(largest);
  const bool finite = std::isfinite(most);
  // Below this, 127/max overflows; so small a group becomes zeros.
  const bool zero = !finite || most < 0x1p-119f;
  const float inverse = zero ? 0.0f : 127.0f / most;
  *scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : most / 127.0f;
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<int8_t>(std::bit_cast<int32_t>(x[i] * inverse + kRound));
}

}  // namespace

void Gemm(const GemmOp::Params& p, const Exec& exec) {
  for (const GemmProblem& problem : p.problems) {
    const int64_t n = problem.w.shape[1];
    exec.threads->ParallelFor(problem.x.shape[0] * n,
                              [&](int64_t task) { GemmColumn(problem, task / n, task % n); });
  }
}

void ExpertGemm(const ExpertGemmOp::Params& p, const Exec& exec) {
  Gemm({p.shared}, exec);
  for (size_t e = 0; e < p.experts.size(); ++e) {
    if (p.experts[e].w.empty()) continue;
    const GemmProblem problem = p.ProblemOf(e);
    Gemm({{&problem, 1}}, exec);
  }
}

void GemmT(const GemmTOp::Params& p, const Exec& exec) {
  const GemmTOp::Shape s = GemmTOp::ShapeOf(p);
  exec.threads->ParallelFor(s.b * s.m, [&](int64_t task) {
    const int64_t b = task / s.m;
    const int64_t m = task % s.m;
    const std::byte* x = RowOf(p.x, b, m);
    float* y = FloatRow(p.y, b, m);
    for (int64_t k = 0; k < s.k; ++k) {
      double sum = 0;
      for (int64_t n = 0; n < s.n; ++n)
        sum += static_cast<double>(LoadElement(x, s.x, n)) * WeightElement(p.w, p.w_scale, b, n, k);
      y[k] = static_cast<float>(sum);
    }
  });
}

void QuantizeRows(const QuantizeRowsOp::Params& p, const Exec& exec) {
  const QuantizeRowsOp::Shape s = QuantizeRowsOp::ShapeOf(p);
  exec.threads->ParallelFor(s.m, [&](int64_t m) {
    for (int64_t k = 0; k < s.k; k += s.group)
      QuantizeGroup(p.x.Row<float>(m) + k, std::min(s.group, s.k - k), p.y.Row<int8_t>(m) + k,
                    p.scale.Row<float>(m) + k / s.group);
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
                                static_cast<double>(LoadElement(p.w.data, p.w.dtype, d)));
  });
}

void LayerNorm(const LayerNormOp::Params& p, const Exec& exec) {
  const int64_t d_count = p.x.shape[1];
  exec.threads->ParallelFor(p.x.shape[0], [&](int64_t m) {
    const float* x = p.x.Row<float>(m);
    float* y = p.y.Row<float>(m);
    double mean = 0;
    for (int64_t d = 0; d < d_count; ++d) mean += static_cast<double>(x[d]);
    mean /= static_cast<double>(d_count);
    double variance = 0;
    for (int64_t d = 0; d < d_count; ++d) {
      const double difference = static_cast<double>(x[d]) - mean;
      variance += difference * difference;
    }
    variance /= static_cast<double>(d_count);
    const double inverse = 1.0 / std::sqrt(variance + static_cast<double>(p.eps));
    for (int64_t d = 0; d < d_count; ++d) {
      const auto w = static_cast<double>(LoadElement(p.w.data, p.w.dtype, d));
      const auto b = static_cast<double>(LoadElement(p.b.data, p.b.dtype, d));
      y[d] = static_cast<float>((static_cast<double>(x[d]) - mean) * inverse * w + b);
    }
  });
}

void RopeAngles(const RopeAnglesOp::Params& p, const Exec& exec) {
  const int64_t count = p.frequency.shape[0];
  exec.threads->ParallelFor(p.cos.shape[0], [&](int64_t t) {
    const auto position = static_cast<float>(p.positions[static_cast<size_t>(t)]);
    for (int64_t j = 0; j < count; ++j) {
      const auto angle = static_cast<double>(position * p.frequency.Ptr<float>()[j]);
      p.cos.Row<float>(t)[j] = static_cast<float>(std::cos(angle) * p.amplitude);
      p.sin.Row<float>(t)[j] = static_cast<float>(std::sin(angle) * p.amplitude);
    }
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

void QueryTemperature(const QueryTemperatureOp::Params& p, const Exec& exec) {
  const auto [t_count, width] = QueryTemperatureOp::ShapeOf(p);
  const int64_t columns = width;
  exec.threads->ParallelFor(t_count, [&](int64_t t) {
    const int64_t periods = p.positions[static_cast<size_t>(t)] / p.period;
    if (periods == 0) return;
    const auto factor =
        static_cast<float>(1.0 + p.beta * std::log(1.0 + static_cast<double>(periods)));
    float* x = p.x.Row<float>(t);
    for (int64_t i = 0; i < columns; ++i) x[i] *= factor;
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

void AddRmsNorm(const AddRmsNormOp::Params& p, const Exec& exec) {
  Add({p.x, p.h}, exec);
  RmsNorm({p.h, p.w, p.y, p.eps}, exec);
}

void Gather(const GatherOp::Params& p, const Exec& exec) {
  const int64_t d_count = p.y.shape[1];
  exec.threads->ParallelFor(p.y.shape[0], [&](int64_t m) {
    const std::byte* x = p.x.RowBytes(p.ids[static_cast<size_t>(m)]);
    if (p.y.dtype == p.x.dtype && p.scale == 1) {
      std::memcpy(p.y.RowBytes(m), x, static_cast<size_t>(d_count * SizeOf(p.x.dtype)));
      return;
    }
    float* y = p.y.Row<float>(m);
    for (int64_t d = 0; d < d_count; ++d) y[d] = LoadElement(x, p.x.dtype, d) * p.scale;
  });
}

void Cast(const CastOp::Params& p, const Exec& exec) {
  const int64_t width = p.x.shape[static_cast<size_t>(p.x.rank) - 1];
  exec.threads->ParallelFor(width == 0 ? 0 : p.x.elements() / width, [&](int64_t row) {
    const auto* const x = reinterpret_cast<const float*>(p.x.NthRow(row));
    std::byte* const y = p.y.NthRow(row);
    if (p.y.dtype == DType::kF32)
      std::copy_n(x, width, reinterpret_cast<float*>(y));
    else
      RoundTo16(x, width, p.y.dtype, reinterpret_cast<uint16_t*>(y));
  });
}

}  // namespace latte::ref
