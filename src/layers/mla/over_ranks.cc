#include "src/layers/mla/over_ranks.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "src/comm/communicator.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"
#include "src/layers/ranks.h"

namespace latte {
namespace {

std::span<std::byte> FloatBytes(const TensorView& t) {
  return std::as_writable_bytes(std::span(t.Ptr<float>(), static_cast<size_t>(t.elements())));
}

void Copy(const TensorView& from, const TensorView& to, StepContext& step) {
  if (from.elements() > 0) Run<CastOp>({from, to}, step.exec);
}

// Sends the heads of each rank to it. tensors: [rows, H, …] f32 of this rank. rows: of each rank.
// Returns what each rank has sent, one tensor after the other: [rows, own heads, …].
TensorView SendHeads(const HeadRanges& parts, std::span<const TensorView> tensors,
                     std::span<const int64_t> rows, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const size_t ranks = rows.size();
  int64_t width = 0;  // of a row and head
  for (const TensorView& t : tensors) width += t.rank == 3 ? t.shape[2] : 1;
  const auto heads_of = [&](size_t r) { return parts.begins[r + 1] - parts.begins[r]; };
  const auto own = static_cast<size_t>(parts.own);
  std::vector<int64_t> sent, received;
  for (size_t r = 0; r < ranks; ++r) {
    sent.push_back(rows[own] * heads_of(r) * width * SizeOf(DType::kF32));
    received.push_back(rows[r] * heads_of(own) * width * SizeOf(DType::kF32));
  }
  const auto floats = [](const std::vector<int64_t>& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) / SizeOf(DType::kF32);
  };
  const TensorView send = workspace.Take(DType::kF32, {floats(sent)});
  const TensorView receive = workspace.Take(DType::kF32, {floats(received)});
  float* at = send.Ptr<float>();
  for (size_t r = 0; r < ranks; ++r)
    for (const TensorView& t : tensors) {
      const TensorView part = t.Slice(1, parts.begins[r], parts.begins[r + 1]);
      TensorView to = part;
      to.data = reinterpret_cast<std::byte*>(at);
      to.stride = {part.shape[1] * part.stride[1], part.stride[1], 1};
      Copy(part, to, step);
      at += part.elements();
    }
  step.cache_ranks->AllToAll(FloatBytes(send), sent, FloatBytes(receive), received);
  return receive;
}

// The part of a range of keys that lies in one split.
struct KeyRange {
  int64_t begin, end;
};

// The parts of keys [begin, end) that an owner has, in order.
std::vector<KeyRange> RangesOf(const KeyOwner& owner, int64_t begin, int64_t end) {
  std::vector<KeyRange> out;
  for (int64_t split = begin / kSplitKeys; split * kSplitKeys < end; ++split)
    if (owner.OwnsSplit(split))
      out.push_back({std::max(begin, split * kSplitKeys), std::min(end, (split + 1) * kSplitKeys)});
  return out;
}

}  // namespace

void MergeOutputs(const HeadRanges& parts, const TensorView& partial, const TensorView& lse,
                  const TensorView& o, StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const auto ranks = static_cast<size_t>(step.cache_ranks->size());
  const int64_t v = o.shape[2];
  const int64_t m = o.shape[0] * o.shape[1];
  const std::vector<int64_t> rows(ranks, o.shape[0]);
  const TensorView tensors[] = {partial, lse};
  float* from = SendHeads(parts, tensors, rows, step).Ptr<float>();
  if (m == 0) return;
  const TensorView merged = o.Reshape({m, v});
  const TensorView merged_lse(from + m * v, DType::kF32, {m});
  Copy(TensorView(from, DType::kF32, {m, v}), merged, step);
  for (size_t r = 1; r < ranks; ++r) {
    from += m * (v + 1);
    Run<LseMergeOp>({merged, merged_lse, TensorView(from, DType::kF32, {m, v}),
                     TensorView(from + m * v, DType::kF32, {m})},
                    step.exec);
  }
}

void MergeSplits(const HeadRanges& parts, const SplitResults& splits,
                 std::span<const SequenceChunk> sequences, const TensorView& o_latent,
                 StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const int64_t ranks = step.cache_ranks->size();
  const int64_t heads = parts.begins.back();
  const int64_t own = o_latent.shape[1];
  const int64_t c = o_latent.shape[2];
  std::vector<int64_t> rows;
  for (int64_t r = 0; r < ranks; ++r)
    rows.push_back(MlaDecodeOp::RowsOfSplits(sequences, {r, ranks}));
  const int64_t mine = rows[static_cast<size_t>(parts.own)];
  const TensorView tensors[] = {splits.o.Reshape({mine, heads, c}),
                                splits.max.Reshape({mine, heads}),
                                splits.sum.Reshape({mine, heads})};
  float* received = SendHeads(parts, tensors, rows, step).Ptr<float>();
  if (own == 0) return;
  std::vector<SplitResults> next;  // of each rank: where its first split that is not merged begins
  for (const int64_t count : rows) {
    const int64_t m = count * own;
    next.push_back({TensorView(received, DType::kF32, {m, c}),
                    TensorView(received + m * c, DType::kF32, {m}),
                    TensorView(received + m * (c + 1), DType::kF32, {m})});
    received += m * (c + 2);
  }
  std::vector<SplitResults> in_order;
  int64_t token = 0;
  for (const SequenceChunk& s : sequences) {
    const int64_t m = s.count * own;
    in_order.clear();
    for (int64_t split = 0; split < KeyOwner::SplitsIn(s.total_len()); ++split) {
      SplitResults& from = next[static_cast<size_t>(split % ranks)];
      in_order.push_back({from.o.Slice(0, 0, m), from.max.Slice(0, 0, m), from.sum.Slice(0, 0, m)});
      const int64_t left = from.max.shape[0];
      from = {from.o.Slice(0, m, left), from.max.Slice(0, m, left), from.sum.Slice(0, m, left)};
    }
    const TensorView o = o_latent.Slice(0, token, token + s.count).Reshape({m, c});
    Run<MergeSplitsOp>({in_order, o, {}}, step.exec);
    token += s.count;
  }
}

void ReadKeysOfRanks(int64_t begin, const TensorView& rows,
                     const std::function<void(int64_t, const TensorView&)>& read,
                     StepContext& step) {
  const Workspace::Scope scope(*step.workspace);
  const KeyOwner own = OwnerOf(step);
  const int64_t end = begin + rows.shape[0];
  const int64_t width = rows.shape[1];
  const TensorView all = step.workspace->Take(DType::kF32, {rows.shape[0], width});
  std::vector<int64_t> bytes;
  int64_t row = 0;  // in `all`: rank by rank
  int64_t own_row = 0;
  for (int64_t rank = 0; rank < own.count; ++rank) {
    const int64_t first = row;
    if (rank == own.index) own_row = row;
    for (const KeyRange& range : RangesOf({rank, own.count}, begin, end)) {
      const int64_t next = row + range.end - range.begin;
      if (rank == own.index) read(range.begin, all.Slice(0, row, next));
      row = next;
    }
    bytes.push_back((row - first) * width * SizeOf(DType::kF32));
  }
  const std::span<std::byte> everything = FloatBytes(all);
  step.cache_ranks->AllGather(
      everything.subspan(static_cast<size_t>(own_row * width * SizeOf(DType::kF32)),
                         static_cast<size_t>(bytes[static_cast<size_t>(own.index)])),
      bytes, everything);
  row = 0;
  for (int64_t rank = 0; rank < own.count; ++rank)
    for (const KeyRange& range : RangesOf({rank, own.count}, begin, end)) {
      const int64_t next = row + range.end - range.begin;
      Copy(all.Slice(0, row, next), rows.Slice(0, range.begin - begin, range.end - begin), step);
      row = next;
    }
}

}  // namespace latte
