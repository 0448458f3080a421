// Launches gemm, C = A·Bᵀ with A = x, B = W, C = y: packs A if the kernel wants that, divides C
// into blocks and runs a task per block. Weights in blocks of GGUF files: block_product.h.
#include <algorithm>
#include <array>
#include <iterator>

#include "src/kernels/cpu/blocking.h"
#include "src/kernels/cpu/blocks/block_product.h"
#include "src/kernels/cpu/parallel.h"
#include "src/kernels/cpu/tuning.h"

namespace latte::cpu {

bool Supports(const GemmOp::Shape& s) {
  constexpr int64_t kMinScaleGroup = 16;
  if (IsBlocks(s.w)) return s.k > 0 && s.k <= kMaxBlockK && IsPlain(s.x) && s.scale_group == 0;
  return s.k > 0 && (IsPlain(s.x) || s.x == DType::kI8) && IsWeight(s.w) &&
         (s.scale_group == 0 || s.scale_group >= kMinScaleGroup || s.scale_group == s.k);
}

namespace {

// Elements of C of a task with a gate: gate·x is kept in scratch until it is multiplied.
constexpr int64_t kMaxGated = 1 << 15;
// Rows of a task with f32 or 16-bit A, whose B is widened or packed once for all of them.
constexpr int64_t kMaxWideRows = 512;
constexpr int64_t kMinGatedColumns = 128;
constexpr int64_t kPackRows = 16;  // rows of A that are packed together

GemmTask GemmTaskAt(const GemmProblem& p, const Block& at) {
  GemmTask t = {};
  t.x = At(p.x, at.b, at.m);
  t.w = At(p.w, at.b, at.n);
  t.x_type = p.x.dtype;
  t.w_type = p.w.dtype;
  t.x_stride = p.x.stride[1];
  t.w_stride = p.w.stride[1];
  t.y_stride = p.y.stride[1];
  t.grid = ScaleGridAt(p.w_scale, at.b, at.n, 0);
  if (!p.x_scale.empty()) {
    t.x_scale = FloatAt(p.x_scale, at.b, at.m);
    t.x_scale_stride = p.x_scale.stride[1];
    t.x_group = p.x_group;
  }
  t.bias = p.bias.empty() ? nullptr : p.bias.Ptr<float>() + at.n;
  t.y = FloatAt(p.y, at.b, at.m) + at.n;
  t.m = at.rows;
  t.n = at.columns;
  t.k = p.x.shape[2];
  return t;
}

// The same product with the gate's weights.
GemmTask GateOf(const GemmProblem& p, const Block& at, GemmTask t) {
  t.w = At(p.gate, at.b, at.n);
  t.w_type = p.gate.dtype;
  t.w_stride = p.gate.stride[1];
  t.grid = ScaleGridAt(p.gate_scale, at.b, at.n, 0);
  return t;
}

// The weights that the task of a block reads first, for prefetching.
GemmTask FirstTaskAt(const GemmProblem& p, const Block& at) {
  const GemmTask t = GemmTaskAt(p, at);
  return p.gate.empty() ? t : GateOf(p, at, t);
}

// Packed A of one problem: [b, ⌈m/16⌉] tiles of `bytes` each.
struct PackedA {
  std::byte* data = nullptr;  // null: A is not packed
  int64_t tiles = 0, bytes = 0;

  std::byte* At(int64_t b, int64_t m) const { return data + (b * tiles + m / kPackRows) * bytes; }
};

struct GemmScratch {
  alignas(64) float gate[kMaxGated];
  BlockScratch blocks;
};

void RunGemmTask(const GemmKernel& kernel, const GemmTask& task, GemmScratch& scratch) {
  const bool in_place = !IsBlocks(task.w_type) ||
                        std::ranges::find(kBlockOperands, task.w_type) != std::end(kBlockOperands);
  if (in_place) return kernel.gemm(task);
  MultiplyBlocks(kernel, task, scratch.blocks);
}

void RunGated(const GemmKernel& kernel, const GemmProblem& p, const Block& at, const GemmTask& up,
              GemmScratch& scratch) {
  GemmTask gate = GateOf(p, at, up);
  gate.y = scratch.gate;
  gate.y_stride = at.columns;
  gate.next = &up;
  RunGemmTask(kernel, gate, scratch);
  RunGemmTask(kernel, up, scratch);
  for (int64_t i = 0; i < at.rows; ++i) {
    float* const y = up.y + i * up.y_stride;
    kernel.silu_mul({scratch.gate + i * at.columns, y, y, at.columns});
  }
}

void RunBlock(const GemmKernel& kernel, const GemmProblem& p, const PackedA& packed,
              const Block& at, const GemmTask* next, const Exec& exec, std::byte* scratch) {
  GemmTask task = GemmTaskAt(p, at);
  task.tuning = &TuningOf(*exec.machine);
  task.next = next;
  task.scratch = TargetScratch(scratch);
  if (packed.data != nullptr) task.packed = packed.At(at.b, at.m);
  auto& own = LaunchScratch<GemmScratch>(scratch);
  if (p.gate.empty()) return RunGemmTask(kernel, task, own);
  RunGated(kernel, p, at, task, own);
}

// Whether A is packed once per call.
bool PacksA(const GemmKernel& kernel, const GemmProblem& p) {
  return kernel.pack_a != nullptr &&
         (kernel.packs_a == nullptr || kernel.packs_a(p.w.dtype, p.x.shape[1]));
}

BlockGrid GemmBlocks(const GemmKernel& kernel, const GemmProblem& p, int64_t problems,
                     const Exec& exec) {
  const int64_t step = kernel.amx_tiles ? 32 : 8;
  const GemmOp::Shape s = GemmOp::ShapeOf(p);
  BlockingRules rules{.step = step, .products = problems * s.b};
  rules.int8 = s.x == DType::kI8;
  rules.packs_in_task = kernel.packs_in_task;
  if (!rules.int8) rules.max_rows = p.gate.empty() ? kMaxWideRows : kMaxGated / kMinGatedColumns;
  if (s.w == s.x) rules.n_multiple = kernel.n_multiple;
  BlockGrid out = kernel.amx_tiles ? ChooseBlocksForTiles(p, problems, exec)
                                   : ChooseBlocks(s.m, s.n, s.k, rules, exec);
  if (!p.gate.empty())
    out.columns = std::min(out.columns, kMaxGated / std::max<int64_t>(out.rows, 1) / step * step);
  return out;
}

// Bytes of a tile of packed A.
int64_t TileBytes(const GemmKernel& kernel, int64_t k) {
  return CeilDiv(k, kernel.packed_block.columns) * kernel.packed_block.bytes;
}

// The blocks of up to kMaxProblems problems in one list.
struct GemmWork {
  std::array<BlockGrid, kMaxProblems> grids;
  std::array<int64_t, kMaxProblems + 1> first = {};  // number of each problem's first block
  std::array<PackedA, kMaxProblems> packed = {};
  int64_t macs = 0;
};

void PackProblem(const GemmKernel& kernel, const GemmProblem& p, const PackedA& packed,
                 int64_t macs, const Exec& exec) {
  const GemmOp::Shape s = GemmOp::ShapeOf(p);
  ForEachTask(s.b * packed.tiles, macs, exec, [&](int64_t task) {
    const int64_t b = task / packed.tiles;
    const int64_t m = task % packed.tiles * kPackRows;
    const GemmTask of = GemmTaskAt(p, {b, m, std::min(kPackRows, s.m - m), 0, 0});
    kernel.pack_a({of.x, of.x_stride, of.m, of.k, packed.At(b, m), of.x_scale, of.x_scale_stride,
                   of.x_group, of.w_type});
  });
}

bool SameA(const GemmProblem& a, const GemmProblem& b) {
  return a.x.data == b.x.data && a.x.shape == b.x.shape && a.x.stride == b.x.stride &&
         a.x_scale.data == b.x_scale.data;
}

// Packs A of all problems into the threads' scratch. Consecutive problems with the same A share it.
void PackAll(std::span<const GemmProblem> problems, std::span<const GemmKernel* const> kernels,
             const Exec& exec, GemmWork& list) {
  const auto packs = [&](size_t i) { return PacksA(*kernels[i], problems[i]); };
  const auto same = [&](size_t i) {
    return i > 0 && packs(i - 1) && kernels[i]->pack_a == kernels[i - 1]->pack_a &&
           SameA(problems[i], problems[i - 1]);
  };
  int64_t bytes = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    if (!packs(i)) continue;
    const GemmOp::Shape s = GemmOp::ShapeOf(problems[i]);
    PackedA& packed = list.packed[i];
    packed.tiles = CeilDiv(s.m, kPackRows);
    packed.bytes = TileBytes(*kernels[i], s.k);
    if (!same(i)) bytes += s.b * packed.tiles * packed.bytes;
  }
  if (bytes == 0) return;
  std::byte* at = exec.threads->Scratch(bytes);
  for (size_t i = 0; i < problems.size(); ++i) {
    if (!packs(i)) continue;
    PackedA& packed = list.packed[i];
    packed.data = same(i) ? list.packed[i - 1].data : at;
    if (same(i)) continue;
    at += problems[i].x.shape[0] * packed.tiles * packed.bytes;
    PackProblem(*kernels[i], problems[i], packed, list.macs, exec);
  }
}

GemmWork MakeGemmWork(std::span<const GemmProblem> problems,
                      std::span<const GemmKernel* const> kernels, const Exec& exec) {
  GemmWork list;
  for (size_t i = 0; i < problems.size(); ++i) {
    const int64_t batch = problems[i].x.shape[0];
    const BlockGrid grid = GemmBlocks(*kernels[i], problems[i], std::ssize(problems), exec);
    list.grids[i] = grid;
    list.first[i + 1] = list.first[i] + batch * grid.per_batch();
    list.macs += batch * grid.m * grid.n * grid.macs;
  }
  PackAll(problems, kernels, exec, list);
  return list;
}

}  // namespace

void Gemm(std::span<const GemmProblem> problems, std::span<const GemmKernel* const> kernels,
          const Exec& exec) {
  const GemmWork list = MakeGemmWork(problems, kernels, exec);
  const auto end = list.first.begin() + static_cast<std::ptrdiff_t>(problems.size()) + 1;
  const auto problem_of = [&](int64_t task) {
    return static_cast<size_t>(std::upper_bound(list.first.begin(), end, task) -
                               list.first.begin() - 1);
  };
  const auto block_of = [&](size_t i, int64_t task) {
    return BlockAt(list.grids[i], task - list.first[i]);
  };
  const auto run = [&](int64_t task, int64_t next, std::byte* scratch) {
    const size_t i = problem_of(task);
    if (next < 0)
      return RunBlock(*kernels[i], problems[i], list.packed[i], block_of(i, task), nullptr, exec,
                      scratch);
    const size_t j = problem_of(next);
    const GemmTask ahead = FirstTaskAt(problems[j], block_of(j, next));
    RunBlock(*kernels[i], problems[i], list.packed[i], block_of(i, task), &ahead, exec, scratch);
  };
  // If memory bounds the product, each thread reads consecutive rows of B; for large M all threads
  // share them.
  const int64_t tasks = *(end - 1);
  const auto small_m = [](const GemmProblem& p) { return GemmOp::ShapeOf(p).m <= kMemoryBoundM; };
  if (std::ranges::all_of(problems, small_m)) return ForEachTaskInRuns(tasks, list.macs, exec, run);
  ForEachTaskInScratch(tasks, list.macs, exec, [&](int64_t task, std::byte* scratch) {
    run(task, task + 1 < tasks ? task + 1 : -1, scratch);
  });
}

}  // namespace latte::cpu
