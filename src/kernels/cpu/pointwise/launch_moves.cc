// Pointwise ops that move, rotate, round and combine rows, with the bytes of the reference.
#include <cmath>
#include <cstring>
#include <limits>

#include "src/kernels/cpu/blocks/decode_blocks.h"
#include "src/kernels/cpu/parallel.h"
#include "src/kernels/ref/ref.h"

namespace latte::cpu {
namespace {

// Calls f(begin, end) in parallel for ranges of rows with about kElementsPerTask elements each.
template <class F>
void ForEachRows(int64_t rows, int64_t width, const Exec& exec, const F& f) {
  const int64_t run = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(width, 1));
  exec.threads->ParallelFor(CeilDiv(rows, run),
                            [&](int64_t task) { f(task * run, std::min(rows, (task + 1) * run)); });
}

// Writes x into a row of `dtype` from element `at` on.
void StorePlain(const Target& target, const float* x, int64_t count, DType dtype, int64_t at,
                std::byte* row) {
  std::byte* const to = row + at * SizeOf(dtype);
  if (dtype == DType::kF32)
    target.widen(x, Element::kF32, count, reinterpret_cast<float*>(to));
  else
    target.round(x, count, dtype, to);
}

// Rotates k_rope and q_rope of token t.
void RotateToken(const Target& target, const NormRopeAppendOp::Params& p,
                 const NormRopeAppendOp::Shape& s, int64_t t) {
  const auto rotate = [&](float* x) {
    target.rope({x, p.cos.Row<float>(t), p.sin.Row<float>(t), s.r / 2, p.interleaved});
  };
  rotate(p.latent.Row<float>(t) + s.c);
  for (int64_t h = 0; h < s.h; ++h) rotate(FloatAt(p.q_rope, t, h));
}

// Writes the cached row of token t.
void StoreToken(const Target& target, const NormRopeAppendOp::Params& p,
                const NormRopeAppendOp::Shape& s, int64_t t) {
  const int64_t row = p.slots[static_cast<size_t>(t)];
  if (row < 0) return;
  std::byte* const to = p.pages.data + row * p.pages.shape[2] * SizeOf(s.cache);
  const float* const latent = p.latent.Row<float>(t);
  if (s.kind == CacheFormat::kPlain)
    StorePlain(target, latent, s.c + s.r, s.cache, 0, to);
  else
    ref::QuantiseRow(p.row_format, latent, s.c, latent + s.c, s.r, to);
}

// LseMergeOp for one row.
void MergeKernel(const Target& target, float* o, float& lse, const float* o_b, float lse_b,
                 int64_t width) {
  const auto a = static_cast<double>(lse);
  const auto b = static_cast<double>(lse_b);
  if (!std::isfinite(b)) {
    if (std::isfinite(a)) return;
    std::fill_n(o, width, 0.0f);
    lse = -std::numeric_limits<float>::infinity();
    return;
  }
  if (!std::isfinite(a)) {
    std::copy_n(o_b, width, o);
    lse = lse_b;
    return;
  }
  const double max = std::max(a, b);
  const double sum = std::exp(a - max) + std::exp(b - max);
  target.mix({o, o_b, width, std::exp(a - max) / sum, std::exp(b - max) / sum});
  lse = static_cast<float>(max + std::log(sum));
}

}  // namespace

bool Supports(const RopeOp::Shape&) { return true; }
bool Supports(const AddOp::Shape&) { return true; }
bool Supports(const GatherOp::Shape& s) {
  return IsBlocks(s.x) ? s.y == DType::kF32 : s.y == s.x || IsPlain(s.x);
}
bool Supports(const CastOp::Shape&) { return true; }
bool Supports(const AppendOp::Shape& s) {
  return s.kind == CacheFormat::kPlain && IsPlain(s.cache);
}
bool Supports(const AddRmsNormOp::Shape& s) { return IsPlain(s.w); }
bool Supports(const NormRopeAppendOp::Shape& s) { return IsPlain(s.w); }
bool Supports(const LseMergeOp::Shape&) { return true; }
bool Supports(const CombineOp::Shape&) { return true; }

void Rope(const Target& target, const RopeOp::Params& p, const Exec& exec) {
  const RopeOp::Shape s = RopeOp::ShapeOf(p);
  ForEachRows(s.m, s.g * s.r, exec, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m)
      for (int64_t g = 0; g < s.g; ++g)
        target.rope(
            {FloatAt(p.x, m, g), p.cos.Row<float>(m), p.sin.Row<float>(m), s.r / 2, s.interleaved});
  });
}

void Add(const Target& target, const AddOp::Params& p, const Exec& exec) {
  ForEachRows(p.x.elements(), 1, exec, [&](int64_t begin, int64_t end) {
    target.add(p.x.Ptr<float>() + begin, end - begin, p.y.Ptr<float>() + begin);
  });
}

void Gather(const Target& target, const GatherOp::Params& p, const Exec& exec) {
  const GatherOp::Shape s = GatherOp::ShapeOf(p);
  ForEachRows(s.m, s.d, exec, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      const std::byte* const x = p.x.RowBytes(p.ids[static_cast<size_t>(m)]);
      if (s.y == s.x)
        std::memcpy(p.y.RowBytes(m), x, static_cast<size_t>(s.d * SizeOf(s.x)));
      else if (IsBlocks(s.x))
        DecoderOf(s.x)(x, s.d / ValuesPerElement(s.x), p.y.Row<float>(m));
      else
        target.widen(x, s.x, s.d, p.y.Row<float>(m));
      if (p.scale == 1) continue;
      float* const y = p.y.Row<float>(m);
      for (int64_t d = 0; d < s.d; ++d) y[d] *= p.scale;
    }
  });
}

void Cast(const Target& target, const CastOp::Params& p, const Exec& exec) {
  const int64_t elements = p.x.elements();
  if (p.x.contiguous() && p.y.contiguous())
    return ForEachRows(elements, 1, exec, [&](int64_t begin, int64_t end) {
      StorePlain(target, p.x.Ptr<float>() + begin, end - begin, p.y.dtype, begin, p.y.data);
    });
  const int64_t width = p.x.shape[static_cast<size_t>(p.x.rank) - 1];
  ForEachRows(elements / std::max<int64_t>(width, 1), width, exec, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      StorePlain(target, reinterpret_cast<const float*>(p.x.NthRow(row)), width, p.y.dtype, 0,
                 p.y.NthRow(row));
  });
}

void Append(const Target& target, const AppendOp::Params& p, const Exec& exec) {
  const AppendOp::Shape s = AppendOp::ShapeOf(p);
  const int64_t row_bytes = (s.first + s.second) * SizeOf(s.cache);
  ForEachRows(s.t, s.first + s.second, exec, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (p.slots[static_cast<size_t>(t)] < 0) continue;
      std::byte* const row = p.pages.data + p.slots[static_cast<size_t>(t)] * row_bytes;
      StorePlain(target, p.first.Row<float>(t), s.first, s.cache, 0, row);
      if (s.second > 0) StorePlain(target, p.second.Row<float>(t), s.second, s.cache, s.first, row);
    }
  });
}

void AddRmsNorm(const Target& target, const AddRmsNormOp::Params& p, const Exec& exec) {
  const AddRmsNormOp::Shape s = AddRmsNormOp::ShapeOf(p);
  ForEachRows(s.m, s.d, exec, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      float* const h = p.h.Row<float>(m);
      target.add(p.x.Row<float>(m), s.d, h);
      target.rms_norm({h, p.w.data, s.w, p.y.Row<float>(m), s.d, p.eps});
    }
  });
}

void NormRopeAppend(const Target& target, const NormRopeAppendOp::Params& p, const Exec& exec) {
  const NormRopeAppendOp::Shape s = NormRopeAppendOp::ShapeOf(p);
  // Quantising a row takes as long as moving kElementsPerTask.
  const int64_t least = s.kind == CacheFormat::kPlain ? 0 : kElementsPerTask;
  ForEachRows(s.t, std::max(s.c + s.r + s.h * s.r, least), exec, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* const c_kv = p.latent.Row<float>(t);
      target.rms_norm({c_kv, p.w.data, s.w, c_kv, s.c, p.eps});
      if (!p.cos.empty()) RotateToken(target, p, s, t);
      if (!p.pages.empty()) StoreToken(target, p, s, t);
    }
  });
}

void LseMerge(const Target& target, const LseMergeOp::Params& p, const Exec& exec) {
  const LseMergeOp::Shape s = LseMergeOp::ShapeOf(p);
  ForEachRows(s.m, s.v, exec, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m)
      MergeKernel(target, p.o.Row<float>(m), p.lse.Ptr<float>()[m], p.o_b.Row<float>(m),
                  p.lse_b.Ptr<float>()[m], s.v);
  });
}

void Combine(const Target& target, const CombineOp::Params& p, const Exec& exec) {
  const CombineOp::Shape s = CombineOp::ShapeOf(p);
  ForEachRows(s.t, s.d * s.k, exec, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      target.combine({p.x.Ptr<float>(), p.x.stride[0], p.rows.data() + t * s.k,
                      p.weights.data() + t * s.k, s.k, s.d, p.y.Row<float>(t), p.add});
  });
}

}  // namespace latte::cpu
