// Merges results of attention to several splits, 16 rows per task, with the functions by which
// mla_decode merges its own: the bytes are the same.
#include <algorithm>

#include "src/kernels/cpu/launch.h"
#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {

void MergeSplits(const MlaDecodeKernel& kernel, const MergeSplitsOp::Params& p, const Exec& exec) {
  constexpr int64_t kRows = 16;
  const MergeSplitsOp::Shape s = MergeSplitsOp::ShapeOf(p);
  const int64_t macs = std::ssize(p.splits) * s.m * s.c;
  ForEachTask(CeilDiv(s.m, kRows), macs, exec, [&](int64_t task) {
    const int64_t row = task * kRows;
    const int64_t rows = std::min(kRows, s.m - row);
    const auto rows_of = [&](const SplitResults& one) {
      return SplitResult{one.o.Ptr<float>() + row * s.c, one.max.Ptr<float>() + row,
                         one.sum.Ptr<float>() + row};
    };
    const SplitResult first = rows_of(p.splits.front());
    float max[kRows];
    float sum[kRows];
    const SplitResult to = {p.o.Row<float>(row), max, sum};
    std::copy_n(first.o, rows * s.c, to.o);
    std::copy_n(first.max, rows, max);
    std::copy_n(first.sum, rows, sum);
    for (const SplitResults& one : p.splits.subspan(1))
      kernel.merge_splits(to, rows_of(one), 0, 1, rows, s.c);
    kernel.normalize_split(to, rows, s.c, p.lse.empty() ? nullptr : p.lse.Ptr<float>() + row);
  });
}

}  // namespace latte::cpu
