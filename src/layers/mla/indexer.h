// clang-format off
// The lightning indexer of DeepSeek Sparse Attention: chooses the keys that a token attends to.
//
//   H  heads of the indexer     W  width of a head     K  keys that a token attends to
//
//   q [T, H, W] = W_q·c_q                     the query latent of the attention layer, after its
//                                             norm
//   k [T, W]    = LayerNorm(W_k·x)            one key for all heads; the cache stores it
//   w [T, H]    = W_w·x                       products with x as it is, not rounded
//   score[t,s]  = Σ_j w[t,j] · max(q[t,j]·k[s], 0)
//
// The first R columns of q and k are rotated, by the angles of the attention layer. IndexTopKOp
// (kernels/params/indexer.h) scores and chooses. Keys are appended at every length, so that they
// are there when a sequence has more than K tokens.
//
// Source: DeepSeek-V3.2 report, §2.1; DeepSeek's revised inference code; transformers 5.13 and
// later.
// clang-format on
#pragma once

#include <span>

#include "src/checkpoint/config/model_config.h"
#include "src/layers/linear.h"
#include "src/layers/norm.h"
#include "src/layers/rope.h"

namespace latte {

// Weights of one layer. Immutable after loading.
struct Indexer {
  IndexerDims dims;
  Linear w_q;        // [H·W, Cq]
  Linear w_k;        // [W, D]
  Linear w_weights;  // [H, D]
  LayerNorm k_norm;  // [W]
  // [W, W] bf16, of HadamardMatrix. With quantised latents, queries and keys are multiplied by it:
  // dot products keep their ratios, and no number of a key is much larger than the others when it
  // is rounded. Empty if W is not a power of two.
  Tensor hadamard;
};

// The Hadamard matrix of Sylvester's order, times a power of two near width^−1/2. Empty unless
// width is a power of two.
Tensor HadamardMatrix(int64_t width);

// The stream of index keys for latents of type `cache`: numbers of the same type, or e4m3 with a
// scale for quantised latents.
CacheStream IndexerCacheStream(const IndexerDims& dims, CacheDType cache);

// The values of all new tokens that the attention layer has.
struct IndexerInputs {
  int64_t layer = 0;  // index into the cache
  const RopeConfig& rope;
  const RopeAngles& angles;
  TensorView c_q;  // [T, Cq] f32
  TensorView x;    // [T, D] f32
};

// Appends the index keys of all new tokens.
void AppendIndexKeys(const Indexer& indexer, const IndexerInputs& in, StepContext& step);

// Writes the rows of step.key_positions that belong to `group`, neighbouring sequences on the
// sparse path. Their index keys are in the cache.
void ChooseKeys(const Indexer& indexer, const IndexerInputs& in,
                std::span<const SequenceChunk> group, StepContext& step);

}  // namespace latte
