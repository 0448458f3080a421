#include "src/layers/mla/mla.h"

#include "src/base/check.h"
#include "src/layers/path_groups.h"
#include "src/layers/ranks.h"

namespace latte {
namespace {

// [H, rows, C] of kv_b [H·(N+V), C], starting at row `begin` of each head.
TensorView HeadRows(const MlaDims& dims, const Linear& kv_b, int64_t begin, int64_t rows) {
  const int64_t per_head = dims.n + dims.v;
  TensorView out = kv_b.matrix.weight;
  const int64_t heads = out.shape[0] / per_head;
  out.data += begin * out.stride[0] * SizeOf(out.dtype);
  out.rank = 3;
  out.stride = {per_head * out.stride[0], out.stride[0], 1};
  out.shape = {heads, rows, dims.c};
  return out;
}

}  // namespace

TensorView WUk(const MlaDims& dims, const Linear& kv_b) { return HeadRows(dims, kv_b, 0, dims.n); }
TensorView WUv(const MlaDims& dims, const Linear& kv_b) {
  return HeadRows(dims, kv_b, dims.n, dims.v);
}

HeadRanges MlaLayer::PartsIn(const StepContext& step) const {
  if (!step.is_spread) return parts.begins.empty() ? HeadRanges{{0, dims.h}, 0} : parts;
  const KeyOwner owner = OwnerOf(step);
  HeadRanges out{{}, owner.index};
  for (int64_t i = 0; i <= owner.count; ++i)
    out.begins.push_back(RankShare{i, owner.count}.Rows().Begin(dims.h));
  return out;
}

Linear MlaLayer::KvBOf(int64_t begin, int64_t end) const {
  const int64_t per_head = dims.n + dims.v;
  Linear out;
  out.matrix = w_kv_b.matrix.ViewOfRows(begin * per_head, end * per_head);
  return out;
}

std::vector<CacheStream> MlaCacheStreams(const MlaDims& dims, MlaPath path, CacheDType cache) {
  if (path == MlaPath::kDecompressed)
    return {{StreamId::kKey, dims.h * dims.qk(), cache.dtype},
            {StreamId::kValue, dims.h * dims.v, cache.dtype}};
  return {{StreamId::kLatent, cache.Width(dims.c, dims.r), cache.dtype, {cache.kind}}};
}

void Attend(const MlaLayer& mla, const MlaQueries& q, std::span<const SequenceChunk> group,
            const TensorView& o, StepContext& step) {
  switch (group.front().path) {
    case MlaPath::kAbsorbed:
      return AttendAbsorbed(mla, q, group, TensorView(), o, step);
    case MlaPath::kSparse:
      LATTE_CHECK(!step.key_positions.empty(), "a sparse path without lists of positions");
      return AttendAbsorbed(mla, q, group, step.key_positions, o, step);
    case MlaPath::kLatent:
    case MlaPath::kDecompressed:
      for (const SequenceChunk& sequence : group) AttendExpanded(mla, q, sequence, o, step);
      return;
  }
}

namespace {

// Forward up to o [T, H, V] f32, which it writes.
void AttendFrom(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                const TensorView& o, StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  if (mla.dims.h == 0) return AppendRows(mla, angles, x, step);  // more ranks than heads
  const MlaProjections projected = Project(mla, angles, x, step);
  const MlaQueries& q = projected.q;
  if (CachesExpanded(step)) AppendExpanded(mla, projected, step);
  const bool owns_choice = OwnsChoice(mla, step);
  const IndexerInputs inputs = {mla.layer, mla.rope, angles, projected.c_q, x};
  if (owns_choice) AppendIndexKeys(*mla.indexer, inputs, step);

  ForEachPathGroup(step.sequences, [&](std::span<const SequenceChunk> group) {
    if (owns_choice && !step.keys_are_chosen && group.front().path == MlaPath::kSparse)
      ChooseKeys(*mla.indexer, inputs, group, step);
    Attend(mla, q, group, o, step);
  });
}

}  // namespace

void Forward(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
             const TensorView& y, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const int64_t t = x.shape[0];
  const int64_t h = mla.PartsIn(step).own_heads();
  const int64_t v = mla.dims.v;
  const TensorView o = workspace.Take(DType::kF32, {t, h, v});
  AttendFrom(mla, angles, x, o, step);
  TensorView u = o.Reshape({t, h * v});
  if (step.is_spread) u = GatherColumns(u, mla.dims.h * v, *step.cache_ranks, step, /*unit=*/v);
  if (step.tensor_ranks != nullptr)
    u = GatherColumns(u, mla.w_o.inputs(), *step.tensor_ranks, step, /*unit=*/v);
  ApplyShared(mla.w_o, u, y, step);
}

}  // namespace latte
