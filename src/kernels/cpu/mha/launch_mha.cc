// Expanded attention: divides the call among threads by head and block of queries.
#include "src/kernels/cpu/parallel.h"

namespace latte::cpu {
namespace {

// Queries per task: as many as the scratch holds, but fewer if threads would get less than four
// tasks each, because the lengths of tasks differ along the diagonal.
int64_t QueriesPerTask(const MhaOp::Shape& s, int64_t most, const Exec& exec) {
  const int64_t blocks = CeilDiv(4 * exec.threads->threads(), std::max<int64_t>(s.h, 1));
  return std::clamp<int64_t>(CeilDiv(s.t, blocks), 1, most);
}

}  // namespace

bool Supports(const MhaOp::Shape& s) { return s.n + s.r <= kMaxHeadWidth && s.v <= kMaxHeadWidth; }

void Mha(const MhaKernel& kernel, const MhaOp::Params& p, const Exec& exec) {
  const MhaOp::Shape s = MhaOp::ShapeOf(p);
  const int64_t rows = QueriesPerTask(s, kernel.max_queries, exec);
  const int64_t blocks = CeilDiv(s.t, rows);
  const int64_t macs = s.t * s.s * s.h * (s.n + s.r + s.v);
  ForEachTaskInScratch(blocks * s.h, macs, exec, [&](int64_t task, std::byte* scratch) {
    const int64_t head = task % s.h;
    const int64_t query = (blocks - 1 - task / s.h) * rows;  // the longest first
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
    t.scratch = TargetScratch(scratch);
    kernel.mha(t);
  });
}

}  // namespace latte::cpu
