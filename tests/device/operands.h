// The addresses that an op reads and writes: all of them lie on the device that runs it. An op without
// an overload does not compile.
#pragma once

#include <vector>

#include "src/kernels/ops.h"

namespace latte::testing_support {

using Addresses = std::vector<const void*>;

inline void Add(const TensorView& t, Addresses& out) {
  if (!t.empty()) out.push_back(t.data);
}
template <class T>
void Add(std::span<T> values, Addresses& out) {
  if (!values.empty()) out.push_back(values.data());
}
inline void Add(const BlockScale& s, Addresses& out) { Add(s.scale, out), Add(s.zero, out); }
inline void Add(const GemmProblem& p, Addresses& out) {
  for (const TensorView& t : {p.x, p.w, p.bias, p.y, p.x_scale, p.gate}) Add(t, out);
  Add(p.w_scale, out), Add(p.gate_scale, out);
}

template <class... Operands>
Addresses AllOf(const Operands&... operands) {
  Addresses out;
  (Add(operands, out), ...);
  return out;
}

inline Addresses AddressesOf(const GemmOp::Params& p) {
  Addresses out;
  for (const GemmProblem& problem : p.problems) Add(problem, out);
  return out;
}
inline Addresses AddressesOf(const GemmTOp::Params& p) { return AllOf(p.x, p.w, p.y, p.w_scale); }
inline Addresses AddressesOf(const MlaDecodeOp::Params& p) {
  Addresses out = AllOf(p.q_latent, p.q_rope, p.pages, p.positions, p.o_latent, p.lse);
  for (const SequenceChunk& sequence : p.sequences) Add(sequence.pages, out);
  return out;
}
inline Addresses AddressesOf(const IndexTopKOp::Params& p) {
  Addresses out = AllOf(p.q, p.weights, p.pages, p.positions);
  for (const SequenceChunk& sequence : p.sequences) Add(sequence.pages, out);
  return out;
}
inline Addresses AddressesOf(const MhaOp::Params& p) {
  return AllOf(p.q_nope, p.q_rope, p.k_nope, p.k_rope, p.v, p.o, p.lse);
}
inline Addresses AddressesOf(const LseMergeOp::Params& p) {
  return AllOf(p.o, p.lse, p.o_b, p.lse_b);
}
inline Addresses AddressesOf(const AppendOp::Params& p) {
  return AllOf(p.first, p.second, p.pages, p.slots);
}
inline Addresses AddressesOf(const NormRopeAppendOp::Params& p) {
  return AllOf(p.latent, p.q_rope, p.w, p.cos, p.sin, p.pages, p.slots);
}
inline Addresses AddressesOf(const GatherPagesOp::Params& p) {
  return AllOf(p.pages, p.page_table, p.y);
}
inline Addresses AddressesOf(const RouteOp::Params& p) {
  return AllOf(p.logits, p.bias, p.experts, p.weights);
}
inline Addresses AddressesOf(const GroupByExpertOp::Params& p) {
  return AllOf(p.experts, p.first, p.token, p.row);
}
// The host reads the table of weights, and where they lie on the device.
inline Addresses AddressesOf(const ExpertGemmOp::Params& p) {
  Addresses out = AllOf(p.first, p.x, p.y, p.x_scale);
  for (const ExpertWeights& e : p.experts) {
    for (const TensorView& t : {e.w, e.gate}) Add(t, out);
    Add(e.w_scale, out), Add(e.gate_scale, out);
  }
  for (const GemmProblem& problem : p.shared) Add(problem, out);
  return out;
}
inline Addresses AddressesOf(const CombineOp::Params& p) {
  return AllOf(p.x, p.rows, p.weights, p.y);
}
inline Addresses AddressesOf(const RmsNormOp::Params& p) { return AllOf(p.x, p.w, p.y); }
inline Addresses AddressesOf(const LayerNormOp::Params& p) { return AllOf(p.x, p.w, p.b, p.y); }
inline Addresses AddressesOf(const RopeAnglesOp::Params& p) {
  return AllOf(p.positions, p.frequency, p.cos, p.sin);
}
inline Addresses AddressesOf(const RopeOp::Params& p) { return AllOf(p.x, p.cos, p.sin); }
inline Addresses AddressesOf(const QueryTemperatureOp::Params& p) {
  return AllOf(p.positions, p.x);
}
inline Addresses AddressesOf(const SiluMulOp::Params& p) { return AllOf(p.gate, p.up, p.y); }
inline Addresses AddressesOf(const AddOp::Params& p) { return AllOf(p.x, p.y); }
inline Addresses AddressesOf(const AddRmsNormOp::Params& p) { return AllOf(p.x, p.h, p.w, p.y); }
inline Addresses AddressesOf(const GatherOp::Params& p) { return AllOf(p.x, p.ids, p.y); }
inline Addresses AddressesOf(const FiniteRowsOp::Params& p) { return AllOf(p.x, p.finite); }
inline Addresses AddressesOf(const PackDraftsOp::Params& p) { return AllOf(p.x, p.slots, p.y); }
inline Addresses AddressesOf(const CopyPageOp::Params& p) {
  Addresses out = AllOf(p.packed);
  for (const TensorView& layer : p.layers) Add(layer, out);
  return out;
}
inline Addresses AddressesOf(const CastOp::Params& p) { return AllOf(p.x, p.y); }
inline Addresses AddressesOf(const QuantizeRowsOp::Params& p) { return AllOf(p.x, p.y, p.scale); }

}  // namespace latte::testing_support
