// The exchanges of ranks that divide a cache, for attention. Every rank of StepContext::cache_ranks
// calls all functions, which throw RankLost.
//
// D ranks have the same H heads; rank i has the keys of KeyOwner{i, D} and passes on the finished
// output of its part of the heads. Bytes that a rank sends per token and layer, with H' = H·(D−1)/D
// heads of others:
//
//   MergeOutputs      4·H'·(V+1)
//   MergeSplits       4·H'·(C+2), times its number of splits
//   ReadKeysOfRanks   4·(C+R) per key that it has, to each other rank; once per chunk of a prompt
//   ChooseOverRanks   8·K, to each other rank; only in layers that choose keys
#pragma once

#include <functional>
#include <span>

#include "src/kernels/params/indexer.h"
#include "src/kernels/params/mla.h"
#include "src/layers/mla/mla.h"

namespace latte {

// Merges the outputs for the keys of each rank, in the order of ranks. Shapes: partial [T, H, V]
// f32, lse [T, H] f32, o [T, own heads, V] f32, written.
void MergeOutputs(const HeadRanges& parts, const TensorView& partial, const TensorView& lse,
                  const TensorView& o, StepContext& step);

// Merges the splits of all ranks in the order of keys. splits: of this rank, as MlaDecodeOp returns
// them. Shapes: o_latent [T, own heads, C] f32, written.
void MergeSplits(const HeadRanges& parts, const SplitResults& splits,
                 std::span<const SequenceChunk> sequences, const TensorView& o_latent,
                 StepContext& step);

// Fills rows [S, W] f32 with the cached rows of keys [begin, begin + S) of a sequence. read(first,
// to): writes the cached rows of this rank from key `first` on to `to` [K, W].
void ReadKeysOfRanks(int64_t begin, const TensorView& rows,
                     const std::function<void(int64_t, const TensorView&)>& read,
                     StepContext& step);

// Chooses among the keys of all ranks: the lists that one rank with all keys would write. p: as for
// one rank.
void ChooseOverRanks(IndexTopKOp::Params p, StepContext& step);

// The positions in `lists` [T, K] i32 that are this rank's keys, in lists of the same shape in the
// workspace.
TensorView OwnPositions(const TensorView& lists, StepContext& step);

}  // namespace latte
