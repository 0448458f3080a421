// Mixture-of-experts ops: the router's choice and the weighted sum of expert outputs.
#pragma once

#include <cstdint>
#include <span>

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

// y[t,:] += Σ_k weights[t,k] · x[rows[t,k],:], summed in the order of k; without `add`, y is the sum.
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
