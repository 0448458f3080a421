// Multi-head Latent Attention: one layer, three exact ways to evaluate it. The chapter to read
// first.
//
// Symbols (DeepSeek-V2, arXiv 2405.04434, eq. 9–19; derivations in docs/math/mla.md):
//   B sequences · T new tokens of this step · S cached tokens · P tokens per page · D model width ·
//   H heads C, Cq latent ranks · N, R, V per-head widths: without position, with position, values
//
//   h ──► c_q ──► q_nope [T,H,N], q_rope [T,H,R] (rotated)        queries, through a latent of rank
//   Cq or directly h ──► c_kv [T,C] (normed), k_rope [T,R] (rotated)             one row per token,
//   shared by all heads: this is cached
//
//   expanded   k_nope[h] = W_UK[h]·c_kv,  v[h] = W_UV[h]·c_kv;  s = q_nope·k_nope + q_rope·k_rope;
//   o = Σ p·v absorbed   q_latent[h] = W_UK[h]ᵀ·q_nope[h];  s = q_latent·c_kv + q_rope·k_rope;  o =
//   W_UV[h]·(Σ p·c_kv)
//
//   path           cached            evaluated
//   kAbsorbed      [c_kv | k_rope]   absorbed: few new tokens, long context
//   kLatent        [c_kv | k_rope]   expanded, `expand_tokens` cached tokens at a time, merged by
//   LSE: long prompts kDecompressed  K, V of H heads   expanded: what engines without MLA support
//   do; the baseline
#pragma once

#include "src/checkpoint/config/model_config.h"
#include "src/layers/linear.h"
#include "src/layers/mlp.h"
#include "src/layers/rope.h"

namespace latte {

// Weights and constants of one layer. Immutable after loading.
struct MlaLayer {
  MlaDims dims;
  int64_t layer = 0;  // index into the cache
  float scale = 0;    // (N+R)^−1/2 · mscale²
  RopeConfig rope;
  RmsNorm c_q_norm;   // [Cq]; unused when Cq = 0
  RmsNorm c_kv_norm;  // [C]
  Linear w_dq;        // [Cq, D]; unused when Cq = 0
  Linear w_q;         // [H·(N+R), Cq or D]: W_UQ and W_QR, interleaved head by head
  Linear w_dkv;       // [C+R, D]: W_DKV and W_KR
  Linear w_kv_b;      // [H·(N+V), C]: per head W_UK [N, C], then W_UV [V, C]
  Linear w_o;         // [D, H·V]

  TensorView w_uk() const;  // [H, N, C] inside w_kv_b
  TensorView w_uv() const;  // [H, V, C] inside w_kv_b
};

// cos and sin of a step's positions, shared by all layers: [T, R/2] f32.
struct RopeAngles {
  TensorView cos;
  TensorView sin;
};

// A step's queries after projection and rotation. q [T, H, N+R] f32; the parts are views into it.
struct MlaQueries {
  TensorView nope;  // [T, H, N]
  TensorView rope;  // [T, H, R]
};

// What attention takes of a step's tokens. c_kv and k_rope are parts of rows that lie together.
struct MlaProjections {
  MlaQueries q;
  TensorView c_kv;    // [T, C] f32, normed
  TensorView k_rope;  // [T, R] f32, rotated
};

// Attention of all new tokens: appends their rows to the cache, attends, projects.
// Shapes: x [T, D] f32 (normed hidden), y [T, D] f32, written.
void Forward(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
             const TensorView& y, StepContext& step);

// Streams that a cache for `path` has, for Forward to find by index: {latent} or {key, value}.
std::vector<CacheStream> MlaCacheStreams(const MlaDims& dims, MlaPath path, CacheDType cache);

// Whether the step's cache holds expanded keys and values instead of latents.
inline bool CachesExpanded(const StepContext& step) {
  return !step.sequences.empty() && step.sequences[0].path == MlaPath::kDecompressed;
}

// The parts of Forward; o is [T, H, V] f32.
// Project reads h once for both of its products and, where latents are cached, appends them; x as
// Forward.
MlaProjections Project(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                       StepContext& step);
void AppendExpanded(const MlaLayer& mla, const MlaProjections& projected, StepContext& step);
void AttendAbsorbed(const MlaLayer& mla, const MlaQueries& q,
                    std::span<const SequenceChunk> sequences, const TensorView& o,
                    StepContext& step);
void AttendExpanded(const MlaLayer& mla, const MlaQueries& q, const SequenceChunk& sequence,
                    const TensorView& o, StepContext& step);

}  // namespace latte
