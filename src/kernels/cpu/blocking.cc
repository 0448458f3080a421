#include "src/kernels/cpu/blocking.h"

#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {
namespace {

constexpr int64_t kPanelRows = 64;        // rows of B that a micro-kernel packs or widens together
constexpr int64_t kLaneColumns = 16;      // columns of C per vector register
constexpr int64_t kMinMultipleM = 14;     // GemmKernel::n_multiple applies from this M on
constexpr int64_t kMaxInt8Columns = 512;  // columns of a block for large M, int8 A
constexpr int64_t kWideColumns = 128;     // the same for 16-bit and f32 A: a panel packed at once
// Multiply-adds per row of A of a memory-bound task: a task first packs A and starts its prefetch,
// and that must stay a small part of its time.
constexpr int64_t kMemoryBoundMacs = 1 << 20;

// The fewest columns of a block.
int64_t MinColumns(const BlockGrid& grid, int64_t step, bool multiple, const BlockingRules& rules,
                   const Exec& exec) {
  const int64_t threads = exec.threads->threads();
  // A block narrower than a panel would read all of A for little work.
  int64_t least = grid.m == 1 ? step : RoundUp(kPanelRows, step);
  // Few columns, such as the logits of a router: a block for each thread.
  const int64_t each = RoundUp(CeilDiv(grid.n * rules.products, threads), step);
  if (!rules.int8 && grid.m <= kMemoryBoundM) least = std::min(least, each);
  // A head of 128 columns stays in one block: the remainder of a panel costs as much as a panel.
  if (multiple && rules.int8) least = 3 * step;
  // Each task packs part of A, so it needs enough columns; every thread needs tasks.
  if (rules.int8 && grid.m > kMemoryBoundM)
    least = std::clamp(grid.n / (8 * threads) / least * least, least, kMaxInt8Columns);
  if (!rules.int8 && grid.m > kMemoryBoundM &&
      CeilDiv(grid.n, kWideColumns) * grid.down() >= 4 * threads)
    least = kWideColumns;
  return least;
}

}  // namespace

BlockGrid ChooseBlocks(int64_t m, int64_t n, int64_t macs, const BlockingRules& rules,
                       const Exec& exec) {
  int64_t step = rules.step;
  BlockGrid out{m, n, 1, step, macs};
  if (m == 0 || n == 0) return out;
  out.rows = std::min(m, rules.max_rows);
  const bool multiple = rules.n_multiple > 0 && m >= kMinMultipleM && m <= kMemoryBoundM;
  if (rules.packs_in_task) step = m > kMemoryBoundM ? kPanelRows : kLaneColumns;
  if (multiple) step = rules.n_multiple;
  const int64_t tasks_per_thread = rules.packs_in_task ? 4 : multiple && rules.int8 ? 16 : 8;
  const int64_t share = CeilDiv(n * rules.products, tasks_per_thread * exec.threads->threads());
  const int64_t memory_bound =
      m <= kMemoryBoundM ? std::min(share, CeilDiv(kMemoryBoundMacs, macs)) : 0;
  const int64_t columns =
      RoundUp(std::max(CeilDiv(kTaskMacs, macs * out.rows), memory_bound), step);
  out.columns =
      std::min(std::max(columns, MinColumns(out, step, multiple, rules, exec)), RoundUp(n, step));
  if (out.per_batch() < 2 * exec.threads->threads()) out.rows = std::min(m, rules.max_rows / 4);
  return out;
}

// Tiles read B once for up to kMaxAmxM rows of A. The number of blocks per thread is larger if the
// product is bound by memory, so that threads end together; it counts the blocks of all products of
// the call, because a block takes some time to reach the rate of memory.
BlockGrid ChooseBlocksForTiles(const GemmProblem& p, int64_t products, const Exec& exec) {
  constexpr int64_t kMinColumns = 32;
  constexpr int64_t kInPlaceM = 32;  // B is read in place
  const GemmOp::Shape s = GemmOp::ShapeOf(p);
  BlockGrid out{s.m, s.n, 1, kMinColumns, s.k};
  if (s.m == 0 || s.n == 0) return out;
  out.rows = std::min(s.m, kMaxAmxM);
  out.columns = kMaxAmxN;
  const int64_t threads = exec.threads->threads();
  const int64_t blocks = s.m <= kInPlaceM ? CeilDiv(16 * threads, products) : 4 * threads;
  while (out.columns > kMinColumns && s.b * out.per_batch() < blocks) out.columns /= 2;
  return out;
}

}  // namespace latte::cpu
