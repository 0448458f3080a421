// Mixture-of-experts ops: the router's choice, the products of experts, the weighted sum of
// outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "src/kernels/op_work.h"
#include "src/kernels/params/gemm.h"
#include "src/tensor/tensor.h"

namespace latte {

enum class RouterScore { kSoftmax, kSigmoid };
enum class GroupScore { kMax, kTop2Sum };  // DeepSeek-V2; DeepSeek-V3 with bias

// Chooses K of E experts per token:
//   s = softmax or sigmoid of the logits, c = s + bias
//   1. rank groups by their best c, or by the sum of their best two; exclude all but groups_kept
//   2. choose the K largest c; on a tie, the lower index
//   3. weights: s of the chosen experts, divided by their sum + 1e−20 if `normalize`, times `scale`
// Source: DeepSeek-V3 (arXiv 2412.19437) eq. 12–16; DeepSeek-V2 (arXiv 2405.04434) §2.2.1.
struct RouteOp {
  static constexpr std::string_view kName = "route";
  struct Params {
    TensorView logits;           // [T, E] f32, contiguous
    TensorView bias;             // [E] f32; may be empty
    std::span<int32_t> experts;  // [T·K], written, best first
    std::span<float> weights;    // [T·K], written
    int64_t chosen = 0;          // K
    int64_t groups = 1;          // divides E
    int64_t groups_kept = 1;
    RouterScore score = RouterScore::kSoftmax;
    GroupScore group_score = GroupScore::kMax;
    bool normalize = false;
    float scale = 1.0f;
  };
  struct Shape {
    int64_t t, e, k;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.logits.shape[0], p.logits.shape[1], p.chosen}; }
};

// Sorts the pairs (token, k) by expert, and by token within an expert. The rows of expert e are
// [first[e], first[e+1]).
struct GroupByExpertOp {
  static constexpr std::string_view kName = "group_by_expert";
  struct Params {
    std::span<const int32_t> experts;  // [T·K], each in [0, E)
    int64_t chosen = 0;                // K
    std::span<int32_t> first;          // [E+1], written
    std::span<int32_t> token;          // [T·K], written: token of a row
    std::span<int32_t> row;            // [T·K], written: row of (token, k)
  };
  struct Shape {
    int64_t pairs, e;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    return {static_cast<int64_t>(p.experts.size()), static_cast<int64_t>(p.first.size()) - 1};
  }
};

// One projection of an expert.
struct ExpertWeights {
  TensorView w;  // [N, K], or fewer elements of several values, as in GemmProblem; empty: the call
                 // leaves the expert out
  BlockScale w_scale = {};
  TensorView gate;  // as in GemmProblem; may be empty
  BlockScale gate_scale = {};
};

// Multiplies the rows of every expert with its weights: for first[e] ≤ i < first[e+1]
//
//   y[i,:] = x[i,:]·W[e]ᵀ, with a gate silu(x[i,:]·G[e]ᵀ) ⊙ (x[i,:]·W[e]ᵀ)
//
// The numbers of rows lie where the op runs, and the caller does not know them. Each row is summed
// as in a GEMM of the same weights.
struct ExpertGemmOp {
  static constexpr std::string_view kName = "expert_gemm";
  struct Params {
    // [E], on the host, not changed after loading. At least one has weights; all that have them
    // agree in shape, TypeToRead and scale group, and in having a gate.
    std::span<const ExpertWeights> experts;
    std::span<const int32_t> first;  // [E+1], none smaller than the one before it
    TensorView x;                    // [R, K] f32, bf16, f16 or i8; last dimension contiguous
    TensorView y;  // [R, N] f32, written in rows of experts with weights; last dimension contiguous
    TensorView x_scale;   // of an i8 x: [R, ⌈K/x_group⌉] f32, last dimension contiguous
    int64_t x_group = 0;  // activations per scale, counted from column 0
    // One problem of known size, or none, with the experts' TypeToRead and scale groups: computed
    // in the same call.
    std::span<const GemmProblem> shared;

    // The product of expert `e`. Requires: weights of it, and readable `first`.
    GemmProblem ProblemOf(size_t e) const {
      const auto rows = [&](const TensorView& t) {
        return t.empty() ? t : BatchOfOne(t.Slice(0, first[e], first[e + 1]));
      };
      GemmProblem out;
      out.x = rows(x);
      out.y = rows(y);
      out.x_scale = rows(x_scale);
      out.x_group = x_group;
      out.w = BatchOfOne(experts[e].w);
      out.w_scale = experts[e].w_scale;
      if (!experts[e].gate.empty()) out.gate = BatchOfOne(experts[e].gate);
      out.gate_scale = experts[e].gate_scale;
      return out;
    }
  };
  struct Shape {
    int64_t e, rows, n, k;  // of the experts that have weights; at most `rows` rows each
    DType x, w;
    int64_t x_group = 0;
    int64_t scale_group = 0;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) {
    const auto has_weights = [](const ExpertWeights& e) { return !e.w.empty(); };
    const ExpertWeights& one = *std::ranges::find_if(p.experts, has_weights);
    const int64_t k = p.x.shape[1];
    return {std::ranges::count_if(p.experts, has_weights),
            p.x.shape[0],
            one.w.shape[0],
            k,
            p.x.dtype,
            TypeToRead(one.w, one.gate),
            p.x_group,
            one.w_scale.scale.empty() ? 0 : one.w_scale.ScaleGroup(k)};
  }
  static constexpr bool kWorkReadsOperands = true;  // `first`
  // Weights count if their expert has rows.
  static OpWork WorkOf(const Params& p) {
    OpWork out = GemmOp::WorkOf({p.shared});
    for (size_t e = 0; e < p.experts.size(); ++e) {
      if (p.experts[e].w.empty() || p.first[e] == p.first[e + 1]) continue;
      const GemmProblem problem = p.ProblemOf(e);
      const OpWork own = GemmOp::WorkOf({{&problem, 1}});
      out.flops += own.flops;
      out.bytes += own.bytes;
    }
    return out;
  }
};

// y[t,:] += Σ_k weights[t,k] · x[rows[t,k],:], summed in the order of k; without `add`, y is the
// sum.
struct CombineOp {
  static constexpr std::string_view kName = "combine";
  struct Params {
    TensorView x;                    // [M, D] f32, contiguous: outputs of experts
    std::span<const int32_t> rows;   // [T·K] indices into x
    std::span<const float> weights;  // [T·K]
    int64_t chosen = 0;              // K
    TensorView y;                    // [T, D] f32, read if `add`, written, contiguous
    bool add = true;
  };
  struct Shape {
    int64_t t, d, k;
    bool operator==(const Shape&) const = default;
  };
  static Shape ShapeOf(const Params& p) { return {p.y.shape[0], p.y.shape[1], p.chosen}; }
};

}  // namespace latte
