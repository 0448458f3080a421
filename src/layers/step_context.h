// The arguments of one step, passed down through the model. Never global; rebuilt for every step.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

#include "src/cache/latent_cache.h"
#include "src/kernels/op.h"
#include "src/kernels/params/sequence_chunk.h"
#include "src/tensor/workspace.h"

namespace latte {

class Communicator;

// How tokens of several groups of ranks reach the experts (docs/ranks.md). kAuto chooses kGather or
// kAllToAll by cost. kAllToAll requires whole experts.
enum class ExpertExchange {
  kAuto,
  kGather,    // every rank receives the tokens of all
  kPadded,    // the same in parts of equal size
  kAllToAll,  // a rank receives the tokens that chose its experts
};

// Numbers lie where the model's weights do, on the device of the workspace: tokens, positions,
// slots and the pages of each sequence. The sequences themselves are on the host.
struct StepContext {
  std::span<const int32_t> tokens;     // [T]
  std::span<const int32_t> positions;  // [T]
  std::span<const int64_t> slots;      // [T] page·P + place: where each token's cache row goes
  // Rows in order. Sequences of one path should be neighbours (path_groups.h): they are computed
  // together.
  std::span<const SequenceChunk> sequences;
  // [T, K] i32: the keys that tokens on a sparse path attend to (position_list.h). The model
  // provides the room, each layer with an indexer writes them, and the layers after it read them
  // too. Rows of other tokens are not read; empty if there is no such token. A caller that reads
  // them too provides the room.
  TensorView key_positions;
  bool keys_are_chosen = false;  // key_positions is filled already: layers do not choose
  // The group of ranks that share heads, MLPs and vocabulary (ranks.h); null: this rank is alone in
  // it.
  Communicator* tensor_ranks = nullptr;
  // The ranks that have the same heads and divide the cache: place i is KeyOwner::index. Null: this
  // rank has all pages.
  Communicator* cache_ranks = nullptr;
  // With cache_ranks: results of splits are merged one by one, which gives the bytes of one rank.
  bool merges_each_split = false;
  // The sequences are spread over groups: all groups compute all tokens together. cache_ranks are
  // one rank of each group, and routed experts get group_tokens of the tokens from each group.
  bool is_spread = false;
  // The ranks of all groups, which share the routed experts. Groups are neighbours of equal size.
  // Null: there is one group, whose ranks are tensor_ranks.
  Communicator* expert_ranks = nullptr;
  // [groups] tokens of each group in this call of the model, this one's included: the same on all
  // ranks. If is_spread: the tokens of the step, divided. Only with expert_ranks.
  std::span<const int64_t> group_tokens;
  ExpertExchange expert_exchange = ExpertExchange::kAuto;
  DType arithmetic = DType::kBF16;          // activations are rounded to it before a product
  bool int8_activations = true;             // for int4 and int8 weights, unless arithmetic is f32
  int64_t prefill_workspace_tokens = 4096;  // most cached tokens that are expanded at once
  LatentCache* cache = nullptr;
  Workspace* workspace = nullptr;
  Exec exec;

  int64_t token_count() const { return static_cast<int64_t>(tokens.size()); }
  // The sum over groups. A rank whose group has no tokens takes part in the MoE layers of the
  // others.
  int64_t token_count_of_groups() const {
    return std::accumulate(group_tokens.begin(), group_tokens.end(), int64_t{0});
  }
};

}  // namespace latte
