#include "src/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "src/base/check.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr uint64_t kNoPair = ~uint64_t{0};  // ids are not negative: no pair has this value
constexpr uint32_t kNoRank = ~uint32_t{0};

// For pieces up to this many bytes, a scan over all ranks for each merge is faster than the heap.
// Nearly every piece of real text is shorter.
constexpr size_t kShortPiece = 48;

uint64_t PairKey(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Fibonacci hashing: the high bits of the product depend on all bits of the pair.
uint64_t Hash(uint64_t pair) { return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u; }

}  // namespace

Bpe::Bpe(const std::array<int32_t, 256>& byte_tokens, const std::vector<BpeMerge>& merges,
         WholePieces whole_pieces, MergeOrder order, Characters characters)
    : byte_tokens_(byte_tokens),
      whole_pieces_(std::move(whole_pieces)),
      characters_(std::move(characters)) {
  const size_t size = std::bit_ceil(2 * merges.size() + 2);
  slots_.assign(size, Slot{kNoPair, kNoRank, -1});
  shift_ = static_cast<uint32_t>(64 - std::countr_zero(size));
  for (size_t place = 0; place < merges.size(); ++place) {
    const BpeMerge& merge = merges[place];
    const uint32_t rank =
        static_cast<uint32_t>(order == MergeOrder::kByResult ? merge.result : place);
    const uint64_t pair = PairKey(merge.left, merge.right);
    size_t at = Hash(pair) >> shift_;
    while (slots_[at].pair != kNoPair && slots_[at].pair != pair) at = (at + 1) & (size - 1);
    slots_[at] = {pair, rank, merge.result};
  }
}

const Bpe::Slot* Bpe::Find(int32_t left, int32_t right) const {
  const uint64_t pair = PairKey(left, right);
  const size_t mask = slots_.size() - 1;
  for (size_t at = Hash(pair) >> shift_;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.pair == pair) return &slot;
    if (slot.pair == kNoPair) return nullptr;
  }
}

uint32_t Bpe::Rank(int32_t left, int32_t right) const {
  const Slot* slot = Find(left, right);
  return slot == nullptr ? kNoRank : slot->rank;
}

void Bpe::Encode(std::string_view piece, BpeScratch* scratch, std::vector<int32_t>* out) const {
  if (piece.empty()) return;
  if (!whole_pieces_.empty()) {
    const auto whole = whole_pieces_.find(piece);
    if (whole != whole_pieces_.end()) {
      out->push_back(whole->second);
      return;
    }
  }
  if (piece.size() <= kShortPiece) {
    EncodeShort(piece, out);
  } else {
    EncodeLong(piece, scratch, out);
  }
}

// Writes the symbols that a piece begins as, at most one per byte, and returns their number.
size_t Bpe::FirstSymbols(std::string_view piece, int32_t* symbols) const {
  const auto put_bytes = [&](std::string_view bytes, int32_t* to) {
    return std::transform(bytes.begin(), bytes.end(), to,
                          [&](char c) { return byte_tokens_[static_cast<uint8_t>(c)]; });
  };
  int32_t* end = symbols;
  if (characters_.empty()) {
    end = put_bytes(piece, end);
  } else {
    while (!piece.empty()) {
      const Utf8Step step = DecodeUtf8(piece);
      const std::string_view bytes = piece.substr(0, static_cast<size_t>(step.bytes));
      const auto known = characters_.find(step.code_point);
      if (known != characters_.end())
        *end++ = known->second;
      else
        end = put_bytes(bytes, end);
      piece.remove_prefix(bytes.size());
    }
  }
  return static_cast<size_t>(end - symbols);
}

void Bpe::EncodeShort(std::string_view piece, std::vector<int32_t>* out) const {
  int32_t symbols[kShortPiece];
  uint32_t ranks[kShortPiece];  // ranks[i]: the merge of symbols i and i + 1
  size_t count = FirstSymbols(piece, symbols);
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = Rank(symbols[i], symbols[i + 1]);
  while (count > 1) {
    const size_t at = static_cast<size_t>(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[at] == kNoRank) break;
    symbols[at] = Find(symbols[at], symbols[at + 1])->result;
    std::copy(symbols + at + 2, symbols + count, symbols + at + 1);
    std::copy(ranks + at + 1, ranks + count - 1, ranks + at);
    --count;
    if (at > 0) ranks[at - 1] = Rank(symbols[at - 1], symbols[at]);
    if (at + 1 < count) ranks[at] = Rank(symbols[at], symbols[at + 1]);
  }
  out->insert(out->end(), symbols, symbols + count);
}

void Bpe::EncodeLong(std::string_view piece, BpeScratch* scratch, std::vector<int32_t>* out) const {
  LATTE_CHECK(piece.size() < (size_t{1} << 31), "a piece of {} bytes", piece.size());
  // Separate references: clang 14 cannot capture structured bindings in the lambdas below.
  std::vector<int32_t>& symbols = scratch->symbols;
  std::vector<uint32_t>& ranks = scratch->ranks;
  std::vector<int32_t>& prev = scratch->prev;
  std::vector<int32_t>& next = scratch->next;
  std::vector<uint64_t>& heap = scratch->heap;
  symbols.resize(piece.size());
  const auto count = static_cast<int32_t>(FirstSymbols(piece, symbols.data()));
  const auto symbol_count = static_cast<size_t>(count);
  ranks.assign(symbol_count, kNoRank);
  prev.resize(symbol_count);
  next.resize(symbol_count);
  heap.clear();
  for (int32_t i = 0; i < count; ++i) {
    prev[static_cast<size_t>(i)] = i - 1;
    next[static_cast<size_t>(i)] = i + 1;
  }
  const auto entry = [&](int32_t at) {
    return uint64_t{ranks[at]} << 32 | static_cast<uint32_t>(at);
  };
  for (int32_t i = 0; i + 1 < count; ++i) {
    ranks[i] = Rank(symbols[i], symbols[i + 1]);
    if (ranks[i] != kNoRank) heap.push_back(entry(i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  // Adds the rank of `at` with its new neighbour. Entries with its old rank become stale and are
  // skipped.
  const auto update = [&](int32_t at) {
    const bool last = next[at] >= count;
    ranks[at] = last ? kNoRank : Rank(symbols[at], symbols[next[at]]);
    if (ranks[at] == kNoRank) return;
    heap.push_back(entry(at));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const int32_t at = static_cast<int32_t>(top & 0xFFFFFFFFu);
    if (ranks[at] != top >> 32) continue;
    const int32_t right = next[at];
    symbols[at] = Find(symbols[at], symbols[right])->result;
    symbols[right] = -1;
    ranks[right] = kNoRank;
    next[at] = next[right];
    if (next[at] < count) prev[next[at]] = at;
    update(at);
    if (prev[at] >= 0) update(prev[at]);
  }
  for (int32_t i = 0; i < count; i = next[i]) out->push_back(symbols[i]);
}

}  // namespace latte
