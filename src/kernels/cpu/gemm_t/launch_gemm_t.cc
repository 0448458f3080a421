// Launches gemm_t, C = A·B with A = x [M, N], B = W [N, K], C = y [M, K]: a block of C per task, or
// several products per task if memory bounds them.
#include "src/kernels/cpu/blocking.h"
#include "src/kernels/cpu/parallel.h"
#include "src/kernels/cpu/tuning.h"

namespace latte::cpu {

bool Supports(const GemmTOp::Shape& s) {
  return s.n > 0 && IsPlain(s.x) && IsWeight(s.w) && !IsBlocks(s.w);
}

namespace {

// Products per task: several if memory bounds them, the machine reads many streams faster than one,
// and every thread still gets tasks.
int64_t ProductsPerTask(const GemmTOp::Shape& s, int64_t most, const Exec& exec) {
  if (s.m > kMaxSmallM || !TuningOf(*exec.machine).many_dram_streams) return 1;
  return std::clamp<int64_t>(s.b / (2 * exec.threads->threads()), 1, most);
}

BlockGrid GemmTBlocks(const GemmTKernel& kernel, const GemmTOp::Shape& s, const Exec& exec) {
  BlockGrid blocks = ChooseBlocks(s.m, s.k, s.n, {.step = kTileColumns}, exec);
  // Whole rows of B are read fastest if there are products for every thread.
  const bool enough = s.b * blocks.down() >= exec.threads->threads();
  if ((s.m <= kMemoryBoundM || kernel.whole_rows) && enough)
    blocks.columns = std::max<int64_t>(s.k, 1);
  return blocks;
}

// The weights of a block.
const std::byte* WeightsAt(const GemmTOp::Params& p, const Block& at) {
  return At(p.w, at.b, 0) + at.n * SizeOf(p.w.dtype) / ValuesPerElement(p.w.dtype);
}

// The task of block `at`; `products`: of consecutive batches.
GemmTTask GemmTTaskAt(const GemmTOp::Params& p, const Block& at, int64_t products) {
  const GemmTOp::Shape s = GemmTOp::ShapeOf(p);
  GemmTTask t = {};
  t.x = At(p.x, at.b, at.m);
  t.w = WeightsAt(p, at);
  t.x_type = s.x;
  t.w_type = s.w;
  t.x_stride = p.x.stride[1];
  t.w_stride = p.w.stride[1];
  t.y_stride = p.y.stride[1];
  t.grid = ScaleGridAt(p.w_scale, at.b, 0, at.n);
  t.y = FloatAt(p.y, at.b, at.m) + at.n;
  t.m = at.rows;
  t.n = s.n;
  t.k = at.columns;
  t.batches = std::min(products, s.b - at.b);
  t.x_batch = p.x.stride[0];
  t.w_batch = p.w.stride[0] * SizeOf(s.w);
  t.y_batch = p.y.stride[0];
  t.grid_batch = p.w_scale.batch_rows;
  return t;
}

}  // namespace

void GemmT(const GemmTKernel& kernel, const GemmTOp::Params& p, const Exec& exec) {
  const GemmTOp::Shape s = GemmTOp::ShapeOf(p);
  const int64_t products = ProductsPerTask(s, kernel.batch_in_flight, exec);
  const BlockGrid blocks = GemmTBlocks(kernel, s, exec);
  const auto block_of = [&](int64_t task) {
    Block at = BlockAt(blocks, task);
    at.b *= products;
    return at;
  };
  const auto run = [&](int64_t task, int64_t next, std::byte* scratch) {
    GemmTTask t = GemmTTaskAt(p, block_of(task), products);
    if (next >= 0) {
      const Block ahead = block_of(next);
      t.next_w = WeightsAt(p, ahead);
      t.next_row_begin = ScaleGridAt(p.w_scale, ahead.b, 0, 0).row_begin;
    }
    t.tuning = &TuningOf(*exec.machine);
    t.scratch = TargetScratch(scratch);
    kernel.gemm_t(t);
  };
  const int64_t macs = s.b * s.m * s.n * s.k;
  const int64_t tasks = CeilDiv(s.b, products) * blocks.per_batch();
  if (s.m <= kMemoryBoundM) return ForEachTaskInRuns(tasks, macs, exec, run);
  ForEachTaskInScratch(tasks, macs, exec,
                       [&](int64_t task, std::byte* scratch) { run(task, -1, scratch); });
}

}  // namespace latte::cpu
