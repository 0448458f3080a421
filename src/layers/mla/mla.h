// clang-format off
// Multi-head Latent Attention (MLA): one attention layer, three exact ways to evaluate it, and one
// over chosen keys. Start here. Symbols follow DeepSeek-V2 (arXiv 2405.04434, eq. 9–19);
// docs/math/mla.md derives the formulas.
//
//   T  new tokens in this step              H  heads
//   S  keys: cached and new tokens          N  width of q and k per head, not rotated ("nope")
//   D  width of the hidden state            R  width of q and k per head, rotated ("rope")
//   C  rank of the key-value latent         V  width of v per head
//   Cq rank of the query latent             P  tokens per cache page
//
// 1. Project the hidden state x [T, D]:
//
//   x ── W_DQ, RMSNorm ──▶ c_q [T, Cq] ──┬── W_UQ ────────▶ q_nope [T, H, N]
//                                        └── W_QR, RoPE ──▶ q_rope [T, H, R]
//
//   x ─┬─ W_DKV, RMSNorm ──▶ c_kv   [T, C]  ┐ one row per token, shared by all heads:
//      └─ W_KR, RoPE ──────▶ k_rope [T, R]  ┘ the cache stores [c_kv | k_rope], C + R numbers
//
//   If Cq = 0, the model has no query latent: W_UQ and W_QR multiply x itself. Mistral 4 then
//   multiplies q_nope[t] and q_rope[t] by 1 + β·ln(1 + ⌊position of t / original context⌋).
//
// 2. Attend, for every head, from each new token t to the keys s ≤ t. Two forms, same result:
//
//             expanded (ordinary attention)          absorbed (attention over latents)
//   before    k_nope[s] = W_UK · c_kv[s]             q_latent[t] = W_UKᵀ · q_nope[t]
//             v[s]      = W_UV · c_kv[s]
//   score     q_nope[t]·k_nope[s]                    q_latent[t]·c_kv[s]
//             + q_rope[t]·k_rope[s]                  + q_rope[t]·k_rope[s]
//   softmax   p = softmax over s of scale · score    p = softmax over s of scale · score
//   sum       o[t] = Σ_s p[s] · v[s]                 o_latent[t] = Σ_s p[s] · c_kv[s]
//   after                                            o[t] = W_UV · o_latent[t]
//   cost      2·H·(N+R+V) FLOP per query and key,    2·H·(2C+R) FLOP per query and key
//             2·H·(N+V)·C FLOP to expand a key
//
// 3. Project back: y = W_O · [o of all heads], [T, D].
//
//   MlaPath         cached row         form       used for
//   kAbsorbed       [c_kv | k_rope]    absorbed   decoding: few new tokens, long context
//   kLatent         [c_kv | k_rope]    expanded   prompts: a chunk of prefill_workspace_tokens keys
//                                                 at a time, chunks merged by log-sum-exp
//   kDecompressed   K and V of H heads expanded   baseline: engines without MLA support do this
//   kSparse         [c_kv | k_rope]    absorbed   tokens that see more keys than the indexer of the
//                                                 model chooses: the chosen s instead of all s ≤ t
// clang-format on
#pragma once

#include <optional>
#include <vector>

#include "src/checkpoint/config/model_config.h"
#include "src/layers/linear.h"
#include "src/layers/mla/indexer.h"
#include "src/layers/norm.h"
#include "src/layers/rope.h"

namespace latte {

// Ranks that divide a cache have the same H heads. Each computes them over its own keys, then
// passes on the finished output of some: rank i of heads [begins[i], begins[i + 1]).
struct HeadRanges {
  std::vector<int64_t> begins = {};  // [ranks + 1]
  int64_t own = 0;                   // the place of this rank

  int64_t own_begin() const { return begins[static_cast<size_t>(own)]; }
  int64_t own_end() const { return begins[static_cast<size_t>(own) + 1]; }
  int64_t own_heads() const { return own_end() - own_begin(); }
};

// Weights and constants of one layer. Immutable after loading.
struct MlaLayer {
  MlaDims dims;       // h: the heads of this rank
  HeadRanges parts;   // of these heads; empty: this rank passes on all of them
  int64_t layer = 0;  // index into the cache
  float scale = 0;    // (N+R)^−1/2 · mscale²
  RopeConfig rope;
  RmsNorm c_q_norm;   // [Cq]; unused when Cq = 0
  RmsNorm c_kv_norm;  // [C]
  Linear w_dq;        // [Cq, D]; unused when Cq = 0
  Linear w_q;         // [H·(N+R), Cq or D]: W_UQ and W_QR, interleaved head by head
  Linear w_dkv;       // [C+R, D]: W_DKV and W_KR
  Linear w_kv_b;      // [H·(N+V), C]: per head W_UK [N, C], then W_UV [V, C]
  Linear w_o;         // [D, H·V]; of several ranks each has some rows, for the heads of all ranks
  // Chooses keys for sparse attention. None, although the model has indexers: the layer attends to
  // the keys that the layer before it attends to.
  std::optional<Indexer> indexer;

  // The heads whose output each rank passes on in a step.
  HeadRanges PartsIn(const StepContext& step) const;
  // The rows of w_kv_b for heads [begin, end).
  Linear KvBOf(int64_t begin, int64_t end) const;
};

// Of heads in a row of w_kv_b: W_UK [H, N, C] and W_UV [H, V, C] inside it.
TensorView WUk(const MlaDims& dims, const Linear& kv_b);
TensorView WUv(const MlaDims& dims, const Linear& kv_b);

// A step's queries after projection and rotation. q [T, H, N+R] f32; the parts are views into it.
struct MlaQueries {
  TensorView nope;  // [T, H, N]
  TensorView rope;  // [T, H, R]
};

// Inputs of attention for a step's tokens. c_kv and k_rope are parts of the same rows.
struct MlaProjections {
  MlaQueries q;
  TensorView c_q;     // [T, Cq] f32, normed; empty when Cq = 0
  TensorView c_kv;    // [T, C] f32, normed
  TensorView k_rope;  // [T, R] f32, rotated
};

// Attention of all new tokens: projects, appends to the cache, attends, projects back. Shapes: x
// [T, D] f32 (normed hidden state), y [T, D] f32, written.
void Forward(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
             const TensorView& y, StepContext& step);

// Writes the cache rows that Forward would write, without queries. x as in Forward.
void AppendRows(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                StepContext& step);

// The streams of a cache for `path`: the latents, or keys and values.
std::vector<CacheStream> MlaCacheStreams(const MlaDims& dims, MlaPath path, CacheDType cache);

// Whether the step's cache holds expanded keys and values instead of latents.
inline bool CachesExpanded(const StepContext& step) {
  return step.cache->spec().Has(StreamId::kKey);
}
// Whether the layer chooses keys for itself and for the layers after it that have no indexer.
inline bool OwnsChoice(const MlaLayer& mla, const StepContext& step) {
  return mla.indexer && step.cache->spec().Has(StreamId::kIndexer);
}

// The parts of Forward; x as in Forward, o is [T, own heads, V] f32. Project reads x once for both
// of its products and, if latents are cached, appends them. Attend writes the rows of o that belong
// to `group`, one or more neighbouring sequences of one path, by that path. key_positions: of the
// step; empty: tokens attend to all keys up to themselves.
MlaProjections Project(const MlaLayer& mla, const RopeAngles& angles, const TensorView& x,
                       StepContext& step);
// AppendExpanded writes keys and values where those are cached.
void AppendExpanded(const MlaLayer& mla, const MlaProjections& projected, StepContext& step);
void Attend(const MlaLayer& mla, const MlaQueries& q, std::span<const SequenceChunk> group,
            const TensorView& o, StepContext& step);
void AttendAbsorbed(const MlaLayer& mla, const MlaQueries& q, std::span<const SequenceChunk> group,
                    const TensorView& key_positions, const TensorView& o, StepContext& step);
void AttendExpanded(const MlaLayer& mla, const MlaQueries& q, const SequenceChunk& sequence,
                    const TensorView& o, StepContext& step);

}  // namespace latte
