// The arguments of one step, passed down through the model. Never global; rebuilt for every step.
#pragma once

#include <cstdint>
#include <span>

#include "src/cache/latent_cache.h"
#include "src/kernels/op.h"
#include "src/kernels/params/sequence_chunk.h"
#include "src/tensor/workspace.h"

namespace latte {

class Communicator;

// Numbers lie where the model's weights do, on the device of the workspace: tokens, positions, slots
// and the pages of each sequence. The sequences themselves are on the host.
struct StepContext {
  std::span<const int32_t> tokens;     // [T]
  std::span<const int32_t> positions;  // [T]
  std::span<const int64_t> slots;      // [T] page·P + place: where each token's cache row goes
  // Rows in order. Sequences of one path should be neighbours (path_groups.h): they are computed
  // together.
  std::span<const SequenceChunk> sequences;
  // [T, K] i32: the keys that tokens on a sparse path attend to (position_list.h). The model provides the
  // room, each layer with an indexer writes them, and the layers after it read them too. Rows of other
  // tokens are not read; empty if there is no such token. A caller that reads them too provides the room.
  TensorView key_positions;
  bool keys_are_chosen = false;  // key_positions is filled already: layers do not choose
  // The ranks that share heads, MLPs and vocabulary (ranks.h); null: this rank is alone.
  Communicator* tensor_ranks = nullptr;
  // Tokens of all data-parallel ranks in this step; a rank with T = 0 is idle but takes part.
  int64_t global_tokens = 0;
  DType arithmetic = DType::kBF16;          // activations are rounded to it before a product
  bool int8_activations = true;             // for int4 and int8 weights, unless arithmetic is f32
  int64_t prefill_workspace_tokens = 4096;  // most cached tokens that are expanded at once
  LatentCache* cache = nullptr;
  Workspace* workspace = nullptr;
  Exec exec;

  int64_t token_count() const { return static_cast<int64_t>(tokens.size()); }
};

}  // namespace latte
