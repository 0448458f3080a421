// The part of one sequence that a step computes: new tokens (of a prompt or generated), cached
// length, cache pages and attention path. The scheduler, the layers and the kernels share this
// struct.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/kernels/params/step_chunk.h"

namespace latte {

// How a sequence's attention is evaluated. All evaluate it exactly, kSparse over the listed keys.
// docs/math/mla.md §3.
enum class MlaPath {
  kAbsorbed,      // attend over latents: W_UK folded into the query, W_UV into the output
  kLatent,        // latents are cached and expanded when used, in chunks merged by LSE
  kDecompressed,  // expanded K and V of every head are what is cached
  kSparse,        // as kAbsorbed, but each token attends to the positions that an indexer lists
};

constexpr std::string_view Name(MlaPath path) {
  switch (path) {
    case MlaPath::kAbsorbed:
      return "absorbed";
    case MlaPath::kLatent:
      return "latent";
    case MlaPath::kDecompressed:
      return "decompressed";
    case MlaPath::kSparse:
      return "sparse";
  }
  return "?";
}

struct SequenceChunk {
  std::span<const int32_t> tokens = {};  // [count], the new tokens; kernels do not read them
  int64_t query_start = 0;               // its first row in the step
  int64_t count = 0;                     // new tokens
  int64_t cached_len = 0;                // tokens in the cache before this step
  MlaPath path = MlaPath::kAbsorbed;
  // ⌈total_len/P⌉ pages in order, the new tokens' included; as an argument of a kernel on its
  // device
  std::span<const int32_t> pages = {};
  // The chunk in the memory that computes the step, where neighbours are neighbours too. Null
  // outside of a step: then only kernels of processors take it.
  const StepChunk* placed = nullptr;

  // A chunk of `tokens`, alone in a step.
  static SequenceChunk Of(std::span<const int32_t> tokens, int64_t cached_len, MlaPath path,
                          std::span<const int32_t> pages) {
    return {tokens, 0, static_cast<int64_t>(tokens.size()), cached_len, path, pages};
  }

  int64_t total_len() const { return cached_len + count; }
};

}  // namespace latte
