// Attention layers with random weights over a cache of random latents, for measurements. Covers the
// part between the projections that all paths share.
#pragma once

#include <vector>

#include "src/cache/latent_cache.h"
#include "src/kernels/params/indexer.h"
#include "src/layers/mla/mla.h"

namespace latte {

// `copies` layers that are used in turn, so weights are read from memory, as in a model.
class RandomMlaLayer {
 public:
  struct Options {
    MlaDims dims;
    IndexerDims indexer = {};  // heads == 0: no index keys, and no sparse path
    int64_t copies = 1;
    int64_t max_tokens = 4096;    // cached and new tokens of a sequence
    int64_t batch = 1;            // sequences
    DType dtype = DType::kBF16;   // type of weights, arithmetic and cache
    bool expanded_cache = false;  // caches keys and values of every head, for kDecompressed
  };
  // Errors: kExhausted if the cache does not fit.
  [[nodiscard]] static Result<std::unique_ptr<RandomMlaLayer>> Create(const Options& options);

  // Evaluates the attention of `new_tokens` queries of each sequence after `cached_tokens` by
  // `path`, in the next layer; returns the seconds it took. Does not write the cache. kSparse:
  // scores and chooses keys, then attends to them.
  double Attend(MlaPath path, int64_t new_tokens, int64_t cached_tokens, const Exec& exec);

  // The choice of keys alone.
  double ChooseKeys(int64_t new_tokens, int64_t cached_tokens, const Exec& exec);

  // As Attend, without the products with W_UK and W_UV: attention over latents alone.
  double AttendLatents(int64_t new_tokens, int64_t cached_tokens, const Exec& exec);

  // Copies the cached rows of every sequence, once; returns the seconds it took.
  double CopyRows(int64_t cached_tokens, const Exec& exec);

  const MlaDims& dims() const { return options_.dims; }

 private:
  RandomMlaLayer(const Options& options, LatentCache cache);
  // Random index queries of `sequences`, and room for their lists.
  IndexTopKOp::Params Choice(std::span<const SequenceChunk> sequences, int64_t layer);
  std::vector<SequenceChunk> Chunks(int64_t new_tokens, int64_t cached_tokens, MlaPath path) const;
  const MlaLayer& NextLayer() { return layers_[static_cast<size_t>(next_++ % options_.copies)]; }

  Options options_;
  LatentCache cache_;
  std::vector<Tensor> weights_;  // kv_b of each layer
  std::vector<MlaLayer> layers_;
  std::vector<int32_t> pages_;  // of each sequence in turn, equally many
  Workspace workspace_;
  int64_t next_ = 0;
};

// The indexer of DeepSeek-V3.2.
inline constexpr IndexerDims kDeepSeekIndexer = {.heads = 64, .width = 128, .topk = 2048};

// DeepSeek's attention with `heads` heads: C 512, R 64, N = V = 128.
MlaDims DeepSeekDims(int64_t heads);

}  // namespace latte
