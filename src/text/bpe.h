// Byte pair encoding: which tokens a piece of text becomes. Starts from one token per byte and
// joins the neighbouring pair whose merge comes first in the merge order, the leftmost one of
// equals, until no pair has a merge. Knows ids and bytes only: neither JSON nor patterns.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "latte/status.h"

namespace latte {

// `left` followed by `right` may become `result`.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;
};

// Which of two merges goes first.
enum class MergeOrder {
  kByPlace,   // the earlier one in the list, as in tokenizer.json
  kByResult,  // the one with the lower result, as in tiktoken; several pairs may make the same one
};

// Buffers that Bpe::Encode uses again from call to call. Thread-compatible.
struct BpeScratch {
  std::vector<int32_t> symbols;  // -1: swallowed by the symbol to its left
  std::vector<uint32_t> ranks;   // of the merge of symbol i with the next one that is left
  std::vector<int32_t> prev;     // linked list over the symbols that are left
  std::vector<int32_t> next;
  std::vector<uint64_t> heap;  // rank << 32 | place, smallest on top
};

// Immutable, thread-safe.
class Bpe {
 public:
  // Pieces that are a token as they stand, without looking at merges (`ignore_merges`). The keys
  // must outlive the Bpe.
  using WholePieces = std::unordered_map<std::string_view, int32_t>;

  // When a pair stands twice in `merges`, the later rank counts, as in Hugging Face's `tokenizers`.
  Bpe(const std::array<int32_t, 256>& byte_tokens, const std::vector<BpeMerge>& merges,
      WholePieces whole_pieces = {}, MergeOrder order = MergeOrder::kByPlace);

  // Appends the ids of `piece` to `out`.
  // Requires: fewer than 2^31 bytes.  Cost: O(n log n) time, O(n) memory, constant stack.
  void Encode(std::string_view piece, BpeScratch* scratch, std::vector<int32_t>* out) const;

 private:
  struct Slot {
    uint64_t pair;
    uint32_t rank;
    int32_t result;
  };

  const Slot* Find(int32_t left, int32_t right) const;
  uint32_t Rank(int32_t left, int32_t right) const;
  void EncodeShort(std::string_view piece, std::vector<int32_t>* out) const;
  void EncodeLong(std::string_view piece, BpeScratch* scratch, std::vector<int32_t>* out) const;

  std::array<int32_t, 256> byte_tokens_;
  WholePieces whole_pieces_;
  std::vector<Slot> slots_;  // open addressing; the size is a power of two
  uint32_t shift_ = 0;       // 64 - log2(slots_.size())
};

}  // namespace latte
