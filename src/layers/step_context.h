// The arguments of one step, passed down through the model. Never global; rebuilt for every step.
#pragma once

#include <cstdint>
#include <span>

#include "src/cache/latent_cache.h"
#include "src/kernels/op.h"
#include "src/tensor/workspace.h"

namespace latte {

// How a sequence's attention is evaluated; all are exact. docs/math/mla.md §3.
enum class MlaPath {
  kAbsorbed,      // attend over latents: W_UK folded into the query, W_UV into the output
  kLatent,        // latents are cached and expanded when used, in chunks merged by LSE
  kDecompressed,  // expanded K and V of every head are what is cached
};

// The part of one sequence that a step computes.
struct SequenceSlice {
  int64_t query_start = 0;  // its first row in the step
  int64_t extend_len = 0;   // new tokens
  int64_t cached_len = 0;   // tokens in the cache before this step
  MlaPath path = MlaPath::kAbsorbed;
  std::span<const int32_t> pages;  // for cached_len + extend_len tokens, in order
};

struct StepContext {
  std::span<const int32_t> tokens;     // [T]
  std::span<const int32_t> positions;  // [T]
  std::span<const int64_t> slots;      // [T] page·P + place: where each token's cache row goes
  std::span<const SequenceSlice> sequences;  // rows in order; absorbed sequences come first
  int64_t global_tokens = 0;                 // tokens of all data-parallel ranks in this step
  DType arithmetic = DType::kBF16;           // activations are rounded to it before a product
  bool int8_activations = true;              // for int4 and int8 weights, unless arithmetic is f32
  int64_t prefill_workspace_tokens = 4096;   // most cached tokens that are expanded at once
  LatentCache* cache = nullptr;
  Workspace* workspace = nullptr;
  Exec exec;

  int64_t token_count() const { return static_cast<int64_t>(tokens.size()); }
};

}  // namespace latte
