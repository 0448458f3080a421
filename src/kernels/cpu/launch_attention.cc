// Absorbed decode and expanded attention.
#include "src/kernels/cpu/tasks.h"

namespace latte::cpu {
namespace {

// Attention tasks of one token or one head are at most `most` rows; fewer when there would be
// less than one task per thread.
int64_t RowsPerTask(int64_t rows, int64_t groups, int64_t most, const Exec& exec) {
  const int64_t wanted = CeilDiv(exec.threads->threads(), std::max<int64_t>(groups, 1));
  return std::clamp<int64_t>(CeilDiv(rows, wanted), 1, most);
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

bool Supports(const MlaDecodeOp::Shape& s) {
  return s.c + s.r <= kMaxDecodeWidth && IsFloat(s.cache);
}
bool Supports(const MhaOp::Shape& s) { return s.n + s.r <= kMaxHeadWidth && s.v <= kMaxHeadWidth; }

template <const Target& kTarget>
void Launch<kTarget>::MlaDecode(const MlaDecodeOp::Params& p, const Exec& exec) {
  const MlaDecodeOp::Shape s = MlaDecodeOp::ShapeOf(p);
  int64_t tokens = 0;
  int64_t pairs = 0;  // of tokens and keys
  for (const DecodeSequence& sequence : p.sequences) {
    tokens += sequence.query_len;
    pairs += sequence.query_len * sequence.total_len;
  }
  const int64_t rows = RowsPerTask(s.h, tokens, kTarget.decode_rows, exec);
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
  const int64_t rows = RowsPerTask(s.t, s.h, kMaxRows, exec);
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

template void Launch<kAvx2>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAvx512>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAvx512Bf16>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAmx>::MlaDecode(const MlaDecodeOp::Params&, const Exec&);
template void Launch<kAvx2>::Mha(const MhaOp::Params&, const Exec&);
template void Launch<kAvx512>::Mha(const MhaOp::Params&, const Exec&);

}  // namespace latte::cpu
