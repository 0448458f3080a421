// Matrix products.
#include "src/kernels/cpu/tasks.h"

namespace latte::cpu {
namespace {

// Rows of x per task: reads of W and their widening are spread over them.
constexpr int64_t kTaskRows = 192;
// Rows of W that a target works on at once, and columns of its widest tile.
constexpr int64_t kWeightRows = 64;
constexpr int64_t kTileColumns = 128;

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

}  // namespace

bool Supports(const LinearOp::Shape& s) { return s.k > 0 && IsFloat(s.x) && IsFloat(s.w); }
bool Supports(const LinearTOp::Shape& s) { return s.n > 0 && IsFloat(s.x) && IsFloat(s.w); }

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

template void Launch<kAvx2>::Linear(const LinearOp::Params&, const Exec&);
template void Launch<kAvx512>::Linear(const LinearOp::Params&, const Exec&);
template void Launch<kAvx2>::LinearT(const LinearTOp::Params&, const Exec&);
template void Launch<kAvx512>::LinearT(const LinearTOp::Params&, const Exec&);

}  // namespace latte::cpu
