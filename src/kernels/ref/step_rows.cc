#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/kernels/ref/ref.h"

namespace latte::ref {

void FiniteRows(const FiniteRowsOp::Params& p, const Exec& exec) {
  exec.threads->ParallelFor(p.x.shape[0], [&](int64_t m) {
    const float* const x = p.x.Row<float>(m);
    p.finite[static_cast<size_t>(m)] =
        std::all_of(x, x + p.x.shape[1], [](float value) { return std::isfinite(value); }) ? 1 : 0;
  });
}

void PackDrafts(const PackDraftsOp::Params& p, const Exec& exec) {
  exec.threads->ParallelFor(p.x.shape[0], [&](int64_t m) {
    const int32_t slot = p.slots[static_cast<size_t>(m)];
    if (slot >= 0) std::copy_n(p.x.Row<float>(m), p.x.shape[1], p.y.Row<float>(slot));
  });
}

void CopyPage(const CopyPageOp::Params& p, const Exec& exec) {
  const CopyPageOp::Shape s = CopyPageOp::ShapeOf(p);
  exec.threads->ParallelFor(s.layers, [&](int64_t layer) {
    std::byte* const pages = p.layers[static_cast<size_t>(layer)].data;
    std::byte* const packed = p.packed.data() + layer * s.page_bytes;
    std::memcpy(p.to < 0 ? packed : pages + p.to * s.page_bytes,
                p.from < 0 ? packed : pages + p.from * s.page_bytes,
                static_cast<size_t>(s.page_bytes));
  });
}

}  // namespace latte::ref
