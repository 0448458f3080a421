#include "src/kernels/cpu/launch.h"

#include <algorithm>

#include "src/base/math.h"

namespace latte::cpu {
namespace {

// Multiply-adds per task, about 10 µs of them: enough to hide the hand-over of a task, few enough
// to balance threads. Less than one task's worth runs on the calling thread.
constexpr int64_t kTaskMacs = 1 << 17;
// Rows of x per task: reads of W and their widening are spread over them.
constexpr int64_t kTaskRows = 192;
// Elements per task of pointwise ops, some microseconds of work.
constexpr int64_t kElements = 1 << 14;
// Rows of W that a target works on at once, and columns of its widest tile.
constexpr int64_t kWeightRows = 64;
constexpr int64_t kTileColumns = 128;

Element ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return Element::kBF16;
    case DType::kF16:
      return Element::kF16;
    default:
      return Element::kF32;
  }
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

const std::byte* At(const TensorView& t, int64_t i, int64_t j) {
  return t.data + (i * t.stride[0] + j * t.stride[1]) * SizeOf(t.dtype);
}
float* FloatAt(const TensorView& t, int64_t i, int64_t j) {
  return t.Ptr<float>() + i * t.stride[0] + j * t.stride[1];
}

// Runs f(i) for 0 ≤ i < count on the pool, or here when all of it is less than one task's worth.
template <class F>
void ForEachTask(int64_t count, int64_t macs, const Exec& exec, const F& f) {
  if (macs > kTaskMacs) return exec.threads->ParallelFor(count, f);
  for (int64_t i = 0; i < count; ++i) f(i);
}

// A product cut into blocks of `rows` rows of x and `columns` outputs of each row.
struct Blocks {
  int64_t m, n, rows, columns;
  int64_t macs;  // of an output

  int64_t across() const { return CeilDiv(n, columns); }
  int64_t down() const { return CeilDiv(m, rows); }
  int64_t per_batch() const { return across() * down(); }
};

// macs: multiply-adds of an output. step: what columns are a multiple of.
Blocks Cut(int64_t m, int64_t n, int64_t macs, int64_t step, const Exec& exec) {
  Blocks out{m, n, std::min(m, kTaskRows), 0, macs};
  const int64_t columns = RoundUp(CeilDiv(kTaskMacs, macs * out.rows), step);
  // A block narrower than what a target widens at once would read all of x for less.
  const int64_t least = m == 1 ? step : std::max(step, kWeightRows);
  out.columns = std::min(std::max(columns, least), RoundUp(n, step));
  if (out.per_batch() < 2 * exec.threads->threads()) out.rows = std::min(m, kTaskRows / 4);
  return out;
}

// Calls f(b, m, rows, n, columns) for every block.
template <class F>
void ForEachBlock(const Blocks& blocks, int64_t batch, const Exec& exec, const F& f) {
  // Blocks of the same weights are neighbours: what one has read is still in the cache.
  const int64_t macs = batch * blocks.m * blocks.n * blocks.macs;
  ForEachTask(batch * blocks.per_batch(), macs, exec, [&](int64_t task) {
    const int64_t b = task / blocks.per_batch();
    const int64_t n = task % blocks.per_batch() / blocks.down() * blocks.columns;
    const int64_t m = task % blocks.down() * blocks.rows;
    f(b, m, std::min(blocks.rows, blocks.m - m), n, std::min(blocks.columns, blocks.n - n));
  });
}

// Attention tasks of one token or one head are at most kMaxRows rows; fewer when there would be
// less than one task per thread.
int64_t RowsPerTask(int64_t rows, int64_t groups, const Exec& exec) {
  const int64_t wanted = CeilDiv(exec.threads->threads(), std::max<int64_t>(groups, 1));
  return std::clamp<int64_t>(CeilDiv(rows, wanted), 1, kMaxRows);
}

// The row of `index` among the new tokens of all sequences.
struct TokenOfSequence {
  const DecodeSequence* sequence;
  int64_t index;
};
TokenOfSequence FindToken(std::span<const DecodeSequence> sequences, int64_t index) {
  for (const DecodeSequence& s : sequences) {
    if (index < s.query_len) return {&s, index};
    index -= s.query_len;
  }
  return {nullptr, 0};
}

}  // namespace

bool Supports(const LinearOp::Shape& s) { return s.k > 0 && IsFloat(s.x) && IsFloat(s.w); }
bool Supports(const LinearTOp::Shape& s) { return s.n > 0 && IsFloat(s.x) && IsFloat(s.w); }
bool Supports(const MlaDecodeOp::Shape& s) {
  return s.c + s.r <= kMaxDecodeWidth && IsFloat(s.cache);
}
bool Supports(const MhaOp::Shape& s) { return s.n + s.r <= kMaxHeadWidth && s.v <= kMaxHeadWidth; }
bool Supports(const RmsNormOp::Shape& s) { return IsFloat(s.w); }
bool Supports(const SiluMulOp::Shape&) { return true; }

template <const Target& kTarget>
void Launch<kTarget>::Linear(const LinearOp::Params& p, const Exec& exec) {
  const LinearOp::Shape s = LinearOp::ShapeOf(p);
  if (s.m == 0 || s.n == 0) return;
  const Blocks blocks = Cut(s.m, s.n, s.k, 8, exec);
  ForEachBlock(blocks, s.b, exec,
               [&](int64_t b, int64_t m, int64_t rows, int64_t n, int64_t columns) {
                 LinearTask t;
                 t.x = At(p.x, b, m);
                 t.w = At(p.w, b, n);
                 t.x_type = ElementOf(s.x);
                 t.w_type = ElementOf(s.w);
                 t.x_stride = p.x.stride[1];
                 t.w_stride = p.w.stride[1];
                 t.y_stride = p.y.stride[1];
                 t.bias = p.bias.empty() ? nullptr : p.bias.Ptr<float>() + n;
                 t.y = FloatAt(p.y, b, m) + n;
                 t.m = rows;
                 t.n = columns;
                 t.k = s.k;
                 kTarget.linear(t);
               });
}

template <const Target& kTarget>
void Launch<kTarget>::LinearT(const LinearTOp::Params& p, const Exec& exec) {
  const LinearTOp::Shape s = LinearTOp::ShapeOf(p);
  if (s.m == 0 || s.k == 0) return;
  const Blocks blocks = Cut(s.m, s.k, s.n, kTileColumns, exec);
  ForEachBlock(blocks, s.b, exec,
               [&](int64_t b, int64_t m, int64_t rows, int64_t k, int64_t columns) {
                 LinearTTask t;
                 t.x = At(p.x, b, m);
                 t.w = At(p.w, b, 0) + k * SizeOf(s.w);
                 t.x_type = ElementOf(s.x);
                 t.w_type = ElementOf(s.w);
                 t.x_stride = p.x.stride[1];
                 t.w_stride = p.w.stride[1];
                 t.y_stride = p.y.stride[1];
                 t.y = FloatAt(p.y, b, m) + k;
                 t.m = rows;
                 t.n = s.n;
                 t.k = columns;
                 kTarget.linear_t(t);
               });
}

template <const Target& kTarget>
void Launch<kTarget>::MlaDecode(const MlaDecodeOp::Params& p, const Exec& exec) {
  const MlaDecodeOp::Shape s = MlaDecodeOp::ShapeOf(p);
  int64_t tokens = 0;
  int64_t pairs = 0;  // of tokens and keys
  for (const DecodeSequence& sequence : p.sequences) {
    tokens += sequence.query_len;
    pairs += sequence.query_len * sequence.total_len;
  }
  const int64_t rows = RowsPerTask(s.h, tokens, exec);
  const int64_t groups = CeilDiv(s.h, rows);
  const int64_t macs = pairs * s.h * (2 * s.c + s.r);
  ForEachTask(tokens * groups, macs, exec, [&](int64_t task) {
    const auto [sequence, index] = FindToken(p.sequences, task / groups);
    const int64_t token = sequence->query_start + index;
    const int64_t head = task % groups * rows;
    DecodeTask t;
    t.q_latent = FloatAt(p.q_latent, token, head);
    t.q_rope = FloatAt(p.q_rope, token, head);
    t.q_latent_stride = p.q_latent.stride[1];
    t.q_rope_stride = p.q_rope.stride[1];
    t.pages = p.pages.data;
    t.cache = ElementOf(s.cache);
    t.page_tokens = s.page_tokens;
    t.page_table = sequence->page_table.data();
    t.rows = std::min(rows, s.h - head);
    t.keys = sequence->total_len - sequence->query_len + index + 1;
    t.c = s.c;
    t.r = s.r;
    t.scale = p.scale;
    t.o = p.o_latent.Ptr<float>() + (token * s.h + head) * s.c;
    t.lse = p.lse.empty() ? nullptr : p.lse.Ptr<float>() + token * s.h + head;
    kTarget.mla_decode(t);
  });
}

template <const Target& kTarget>
void Launch<kTarget>::Mha(const MhaOp::Params& p, const Exec& exec) {
  const MhaOp::Shape s = MhaOp::ShapeOf(p);
  const int64_t rows = RowsPerTask(s.t, s.h, exec);
  const int64_t macs = s.t * s.s * s.h * (s.n + s.r + s.v);
  ForEachTask(CeilDiv(s.t, rows) * s.h, macs, exec, [&](int64_t task) {
    const int64_t head = task % s.h;
    const int64_t query = task / s.h * rows;
    MhaTask t;
    t.q_nope = FloatAt(p.q_nope, query, head);
    t.q_rope = FloatAt(p.q_rope, query, head);
    t.k_nope = FloatAt(p.k_nope, 0, head);
    t.k_rope = FloatAt(p.k_rope, 0, head);
    t.v = FloatAt(p.v, 0, head);
    t.q_nope_stride = p.q_nope.stride[0];
    t.q_rope_stride = p.q_rope.stride[0];
    t.k_nope_stride = p.k_nope.stride[0];
    t.k_rope_stride = p.k_rope.stride[0];
    t.v_stride = p.v.stride[0];
    t.rows = std::min(rows, s.t - query);
    t.keys = s.s;
    t.n = s.n;
    t.r = s.r;
    t.v_width = s.v;
    t.q_begin = p.q_begin + query;
    t.key_begin = p.key_begin;
    t.scale = p.scale;
    t.o = p.o.Ptr<float>() + (query * s.h + head) * s.v;
    t.lse = p.lse.Ptr<float>() + query * s.h + head;
    t.o_stride = s.h * s.v;
    t.lse_stride = s.h;
    kTarget.mha(t);
  });
}

template <const Target& kTarget>
void Launch<kTarget>::RmsNorm(const RmsNormOp::Params& p, const Exec& exec) {
  const RmsNormOp::Shape s = RmsNormOp::ShapeOf(p);
  const int64_t rows = std::max<int64_t>(1, kElements / std::max<int64_t>(s.d, 1));
  exec.threads->ParallelFor(CeilDiv(s.m, rows), [&](int64_t task) {
    for (int64_t m = task * rows; m < std::min(s.m, (task + 1) * rows); ++m)
      kTarget.rms_norm(
          {p.x.Row<float>(m), p.w.data, ElementOf(s.w), p.y.Row<float>(m), s.d, p.eps});
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

template struct Launch<kAvx2>;
template struct Launch<kAvx512>;
template void Launch<kAvx512Bf16>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);

}  // namespace latte::cpu
