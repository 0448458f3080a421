// The memory that an op reads and writes. All of it lies on the device that runs the op.
#pragma once

#include <vector>

#include "src/kernels/ops.h"

namespace latte::testing_support {

// The lists of an op's arguments, which lie on the host, copied so that they can be changed.
struct OperandLists {
  std::vector<GemmProblem> problems;
  std::vector<SequenceChunk> sequences;
  std::vector<ExpertWeights> experts;
  std::vector<TensorView> layers;
  std::vector<SplitResults> splits;
};

template <class T>
void Own(std::span<const T>& list, std::vector<T>& copy) {
  copy.assign(list.begin(), list.end());
  list = copy;
}

template <class F>
void VisitScale(BlockScale& s, const F& f) {
  f(s.scale), f(s.zero);
}
template <class F>
void VisitProblems(std::vector<GemmProblem>& problems, const F& f) {
  for (GemmProblem& p : problems) {
    f(p.x), f(p.w), f(p.bias), f(p.y), f(p.x_scale), f(p.gate);
    VisitScale(p.w_scale, f), VisitScale(p.gate_scale, f);
  }
}
template <class F>
void VisitSequences(std::vector<SequenceChunk>& sequences, const F& f) {
  for (SequenceChunk& s : sequences) {
    f(s.pages);
    std::span<const StepChunk> placed(s.placed, s.placed == nullptr ? 0 : 1);
    f(placed);
    s.placed = placed.data();
  }
}

template <class F>
void VisitResults(SplitResults& results, const F& f) {
  f(results.o), f(results.max), f(results.sum);
}

// Calls f with every tensor and span of `p`, by reference. `lists` takes the place of the lists in
// `p`, and must live as long as `p` is used. An op without an overload does not compile.
template <class F>
void VisitOperands(GemmOp::Params& p, OperandLists& lists, const F& f) {
  Own(p.problems, lists.problems);
  VisitProblems(lists.problems, f);
}
template <class F>
void VisitOperands(GemmTOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.w), f(p.y);
  VisitScale(p.w_scale, f);
}
template <class F>
void VisitOperands(ExpertGemmOp::Params& p, OperandLists& lists, const F& f) {
  Own(p.shared, lists.problems);
  Own(p.experts, lists.experts);
  f(p.first), f(p.x), f(p.y), f(p.x_scale);
  for (ExpertWeights& e : lists.experts) {
    f(e.w), f(e.gate);
    VisitScale(e.w_scale, f), VisitScale(e.gate_scale, f);
  }
  VisitProblems(lists.problems, f);
}
template <class F>
void VisitOperands(MlaDecodeOp::Params& p, OperandLists& lists, const F& f) {
  Own(p.sequences, lists.sequences);
  f(p.q_latent), f(p.q_rope), f(p.pages), f(p.positions), f(p.o_latent), f(p.lse);
  VisitResults(p.splits, f);
  VisitSequences(lists.sequences, f);
}
template <class F>
void VisitOperands(MergeSplitsOp::Params& p, OperandLists& lists, const F& f) {
  Own(p.splits, lists.splits);
  f(p.o), f(p.lse);
  for (SplitResults& results : lists.splits) VisitResults(results, f);
}
template <class F>
void VisitOperands(IndexTopKOp::Params& p, OperandLists& lists, const F& f) {
  Own(p.sequences, lists.sequences);
  f(p.q), f(p.weights), f(p.pages), f(p.positions), f(p.scores);
  VisitSequences(lists.sequences, f);
}
template <class F>
void VisitOperands(MhaOp::Params& p, OperandLists&, const F& f) {
  f(p.q_nope), f(p.q_rope), f(p.k_nope), f(p.k_rope), f(p.v), f(p.o), f(p.lse);
}
template <class F>
void VisitOperands(LseMergeOp::Params& p, OperandLists&, const F& f) {
  f(p.o), f(p.lse), f(p.o_b), f(p.lse_b);
}
template <class F>
void VisitOperands(AppendOp::Params& p, OperandLists&, const F& f) {
  f(p.first), f(p.second), f(p.pages), f(p.slots);
}
template <class F>
void VisitOperands(NormRopeAppendOp::Params& p, OperandLists&, const F& f) {
  f(p.latent), f(p.q_rope), f(p.w), f(p.cos), f(p.sin), f(p.pages), f(p.slots);
}
template <class F>
void VisitOperands(GatherPagesOp::Params& p, OperandLists&, const F& f) {
  f(p.pages), f(p.page_table), f(p.y);
}
template <class F>
void VisitOperands(CopyPageOp::Params& p, OperandLists& lists, const F& f) {
  Own(p.layers, lists.layers);
  f(p.packed);
  for (TensorView& layer : lists.layers) f(layer);
}
template <class F>
void VisitOperands(RouteOp::Params& p, OperandLists&, const F& f) {
  f(p.logits), f(p.bias), f(p.experts), f(p.weights);
}
template <class F>
void VisitOperands(GroupByExpertOp::Params& p, OperandLists&, const F& f) {
  f(p.experts), f(p.first), f(p.token), f(p.row);
}
template <class F>
void VisitOperands(CombineOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.rows), f(p.weights), f(p.y);
}
template <class F>
void VisitOperands(RmsNormOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.w), f(p.y);
}
template <class F>
void VisitOperands(AddRmsNormOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.h), f(p.w), f(p.y);
}
template <class F>
void VisitOperands(LayerNormOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.w), f(p.b), f(p.y);
}
template <class F>
void VisitOperands(RopeAnglesOp::Params& p, OperandLists&, const F& f) {
  f(p.positions), f(p.frequency), f(p.cos), f(p.sin);
}
template <class F>
void VisitOperands(RopeOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.cos), f(p.sin);
}
template <class F>
void VisitOperands(QueryTemperatureOp::Params& p, OperandLists&, const F& f) {
  f(p.positions), f(p.x);
}
template <class F>
void VisitOperands(AddOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.y);
}
template <class F>
void VisitOperands(GatherOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.ids), f(p.y);
}
template <class F>
void VisitOperands(CastOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.y);
}
template <class F>
void VisitOperands(QuantizeRowsOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.y), f(p.scale);
}
template <class F>
void VisitOperands(FiniteRowsOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.finite);
}
template <class F>
void VisitOperands(PackDraftsOp::Params& p, OperandLists&, const F& f) {
  f(p.x), f(p.slots), f(p.y);
}

// Bytes from the first element to the end of the last one.
inline int64_t BytesOf(const TensorView& t) {
  if (t.empty()) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < static_cast<size_t>(t.rank); ++i) last += (t.shape[i] - 1) * t.stride[i];
  return (last + 1) * SizeOf(t.dtype);
}
template <class T>
int64_t BytesOf(std::span<T> values) {
  return static_cast<int64_t>(values.size_bytes());
}
inline const void* AddressOf(const TensorView& t) { return t.data; }
template <class T>
const void* AddressOf(std::span<T> values) {
  return values.data();
}

// The addresses that an op reads and writes.
template <class Params>
std::vector<const void*> AddressesOf(Params p) {
  OperandLists lists;
  std::vector<const void*> out;
  VisitOperands(p, lists, [&](const auto& operand) {
    if (BytesOf(operand) > 0) out.push_back(AddressOf(operand));
  });
  return out;
}

}  // namespace latte::testing_support
