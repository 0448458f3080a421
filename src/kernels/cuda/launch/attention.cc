#include <algorithm>

#include "src/base/check.h"
#include "src/kernels/cuda/launch/launch.h"

namespace latte::cuda {
namespace {

constexpr int64_t kReductionBytes = 32 * 4;
constexpr int64_t kAttentionShared = kReductionBytes + 4 * 128;

SequenceTable TableOf(std::span<const SequenceChunk> sequences) {
  const SequenceChunk& first = sequences.front();
  LATTE_CHECK(first.placed != nullptr, "sequences outside of a step");
  return {first.placed, first.pages.data(), static_cast<int32_t>(sequences.size())};
}

}  // namespace

void LaunchMlaDecode(const MlaDecodeOp::Params& p, const Exec& exec) {
  const MlaDecodeOp::Shape s = MlaDecodeOp::ShapeOf(p);
  LATTE_CHECK(p.owner.count == 1 && p.splits.o.empty(), "keys of several owners on a GPU");
  MlaDecodeParams out = {};
  out.q_latent = p.q_latent.Ptr<const float>();
  out.q_rope = p.q_rope.Ptr<const float>();
  out.latent_stride = p.q_latent.stride[0];
  out.latent_head = p.q_latent.stride[1];
  out.rope_stride = p.q_rope.stride[0];
  out.rope_head = p.q_rope.stride[1];
  out.cache = CacheRowsOf(p.pages, p.row_format, s.c, s.r);
  out.o = p.o_latent.Ptr<float>();
  out.lse = p.lse.empty() ? nullptr : p.lse.Ptr<float>();
  out.positions = p.positions.empty() ? nullptr : p.positions.Ptr<const int32_t>();
  out.most = p.positions.empty() ? 0 : static_cast<int32_t>(p.positions.shape[1]);
  out.h = static_cast<int32_t>(s.h);
  out.scale = p.scale;
  out.sequences = TableOf(p.sequences);
  KernelsOf(exec).Launch<KernelId::kMlaDecode>({s.t, s.h}, out, exec.stream, kAttentionShared);
}

void LaunchIndexTopK(const IndexTopKOp::Params& p, const Exec& exec) {
  constexpr int64_t kMostKept = 48 << 10;  // scores in the shared memory of a block
  const IndexTopKOp::Shape s = IndexTopKOp::ShapeOf(p);
  LATTE_CHECK(p.scores.empty(), "scores of listed keys on a GPU");
  IndexTopKParams out = {};
  out.q = p.q.Ptr<const float>();
  out.weights = p.weights.Ptr<const float>();
  out.q_stride = p.q.stride[0];
  out.q_head = p.q.stride[1];
  out.weights_stride = p.weights.stride[0];
  out.cache = CacheRowsOf(p.pages, p.row_format, s.w, 0);
  out.positions = p.positions.Ptr<int32_t>();
  out.most = static_cast<int32_t>(s.k);
  out.h = static_cast<int32_t>(s.h);
  out.sequences = TableOf(p.sequences);
  int64_t longest = 0;
  for (const SequenceChunk& chunk : p.sequences) longest = std::max(longest, chunk.total_len());
  const int64_t fit =
      (KernelsOf(exec).device().info().shared_bytes - kReductionBytes) / int64_t{sizeof(float)};
  out.kept_scores = static_cast<int32_t>(std::min({longest, kMostKept, fit}));
  KernelsOf(exec).Launch<KernelId::kIndexTopK>(
      {s.t}, out, exec.stream, kReductionBytes + out.kept_scores * int64_t{sizeof(float)});
}

void LaunchMha(const MhaOp::Params& p, const Exec& exec) {
  const MhaOp::Shape s = MhaOp::ShapeOf(p);
  MhaParams out = {};
  out.q_nope = p.q_nope.Ptr<const float>();
  out.q_rope = p.q_rope.Ptr<const float>();
  out.k_nope = p.k_nope.Ptr<const float>();
  out.k_rope = p.k_rope.Ptr<const float>();
  out.v = p.v.Ptr<const float>();
  out.q_nope_stride = p.q_nope.stride[0];
  out.q_nope_head = p.q_nope.stride[1];
  out.q_rope_stride = p.q_rope.stride[0];
  out.q_rope_head = p.q_rope.stride[1];
  out.k_nope_stride = p.k_nope.stride[0];
  out.k_nope_head = p.k_nope.stride[1];
  out.k_rope_stride = p.k_rope.stride[0];
  out.k_rope_head = p.k_rope.stride[1];
  out.v_stride = p.v.stride[0];
  out.v_head = p.v.stride[1];
  out.q_begin = p.q_begin;
  out.key_begin = p.key_begin;
  out.o = p.o.Ptr<float>();
  out.lse = p.lse.Ptr<float>();
  out.h = static_cast<int32_t>(s.h);
  out.keys = static_cast<int32_t>(s.s);
  out.n = static_cast<int32_t>(s.n);
  out.r = static_cast<int32_t>(s.r);
  out.width = static_cast<int32_t>(s.v);
  out.scale = p.scale;
  KernelsOf(exec).Launch<KernelId::kMha>({s.t, s.h}, out, exec.stream, kAttentionShared);
}

void LaunchLseMerge(const LseMergeOp::Params& p, const Exec& exec) {
  LseMergeParams out = {};
  out.o = p.o.Ptr<float>();
  out.lse = p.lse.Ptr<float>();
  out.o_b = p.o_b.Ptr<const float>();
  out.lse_b = p.lse_b.Ptr<const float>();
  out.m = static_cast<int32_t>(p.o.shape[0]);
  out.width = static_cast<int32_t>(p.o.shape[1]);
  KernelsOf(exec).Launch<KernelId::kLseMerge>({p.o.shape[0]}, out, exec.stream);
}

}  // namespace latte::cuda
