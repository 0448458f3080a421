// Byte pair encoding: splits a piece of text into tokens. It starts with one token per byte, or per
// character if characters have tokens. It repeatedly joins the neighbouring pair whose merge is
// first in the merge order (the leftmost of equal pairs) until no pair has a merge. It uses only
// ids and bytes, not JSON or patterns.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "latte/status.h"

namespace latte {

// Two neighbours `left` and `right` may be joined into `result`.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;
};

// The order in which merges apply.
enum class MergeOrder {
  kByPlace,   // by place in the list, as in tokenizer.json
  kByResult,  // by the id of the result, as in tiktoken; several pairs may have the same result
};

// Buffers that Bpe::Encode reuses between calls. Thread-compatible.
struct BpeScratch {
  std::vector<int32_t> symbols;  // -1: joined with the symbol to its left
  std::vector<uint32_t> ranks;   // ranks[i]: the merge of symbol i and the next symbol in the list
  std::vector<int32_t> prev;     // linked list of the remaining symbols
  std::vector<int32_t> next;
  std::vector<uint64_t> heap;  // rank << 32 | place; a min-heap
};

// Immutable, thread-safe.
class Bpe {
 public:
  // Pieces that are a token as a whole, which skips the merges (`ignore_merges`). The keys must
  // outlive the Bpe.
  using WholePieces = std::unordered_map<std::string_view, int32_t>;

  // Characters that begin as one token, by code point. A character that is not listed begins as its
  // bytes.
  using Characters = std::unordered_map<char32_t, int32_t>;

  // If `merges` holds a pair twice, the later rank counts, as in Hugging Face's `tokenizers`.
  Bpe(const std::array<int32_t, 256>& byte_tokens, const std::vector<BpeMerge>& merges,
      WholePieces whole_pieces = {}, MergeOrder order = MergeOrder::kByPlace,
      Characters characters = {});

  // Appends the ids of `piece` to `out`.
  // Requires: fewer than 2^31 bytes; valid UTF-8 if there are characters.  Cost: O(n log n) time,
  //                                                                        O(n) memory, constant
  //                                                                        stack.
  void Encode(std::string_view piece, BpeScratch* scratch, std::vector<int32_t>* out) const;

 private:
  struct Slot {
    uint64_t pair;
    uint32_t rank;
    int32_t result;
  };

  const Slot* Find(int32_t left, int32_t right) const;
  uint32_t Rank(int32_t left, int32_t right) const;
  size_t FirstSymbols(std::string_view piece, int32_t* symbols) const;
  void EncodeShort(std::string_view piece, std::vector<int32_t>* out) const;
  void EncodeLong(std::string_view piece, BpeScratch* scratch, std::vector<int32_t>* out) const;

  std::array<int32_t, 256> byte_tokens_;
  WholePieces whole_pieces_;
  Characters characters_;
  std::vector<Slot> slots_;  // open addressing; the size is a power of two
  uint32_t shift_ = 0;       // 64 - log2(slots_.size())
};

}  // namespace latte
