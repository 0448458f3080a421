// A step: the tokens of one pass over the model, and the changes of the cache before it. It is one
// block of memory with room for the largest step, and its lists keep their addresses. So one copy
// to one address sends a step to a device, and one message sends it to other ranks
// (announcement.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/kernels/params/sequence_chunk.h"
#include "src/layers/path_groups.h"
#include "src/models/model.h"
#include "src/tensor/tensor.h"

namespace latte {

// The part of the model that a step runs over its tokens.
enum class StepKind : int64_t {
  kDecoder,    // all layers but those that draft
  kDraft,      // a drafting layer
  kDraftRows,  // the cache rows of a drafting layer, and nothing else
};
inline constexpr int64_t kStepKinds = 3;

// The most rows of a block of logits: 64 rows of the largest vocabularies take 33 MB.
inline constexpr int64_t kLogitBlockRows = 64;

// The most that a step holds.
struct StepCapacity {
  int64_t tokens = 0;
  int64_t chunks = 0;
  int64_t pages = 0;   // of all chunks
  int64_t copies = 0;  // of pages
  int64_t logit_rows = 0;
  int64_t groups = 1;  // of ranks
  int64_t page_tokens = 64;
};

// A list with fixed room at a fixed address.
template <class T>
class StepList {
 public:
  explicit StepList(std::span<T> room) : room_(room) {}

  std::span<T> values() { return room_.first(static_cast<size_t>(count_)); }
  std::span<const T> values() const { return room_.first(static_cast<size_t>(count_)); }
  int64_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == std::ssize(room_); }
  std::span<T> room() { return room_; }

  void Add(const T& value) {
    LATTE_CHECK(!full(), "a step with more than {} values of a kind", room_.size());
    room_[static_cast<size_t>(count_++)] = value;
  }
  void Resize(int64_t count) { count_ = count; }  // Requires: there is room
  void Clear() { count_ = 0; }

 private:
  std::span<T> room_;
  int64_t count_ = 0;
};

struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;
};

// Movable; the lists keep their addresses.
class Step {
 public:
  explicit Step(const StepCapacity& capacity);

  // Forgets everything but the room.
  void Clear();
  // Forgets what other groups of ranks do not take part in.
  void KeepOnlyGroupTokens();

  // Adds a sequence's tokens with their positions and slots. Tokens from position `sparse_from` on
  // are a chunk of their own, on the sparse path: keys of all tokens are appended before any token
  // attends, so the division changes no byte.
  void AddChunk(const SequenceChunk& chunk, int64_t sparse_from = kNeverSparse);

  // Asks for the logits of `rows`, in blocks of their own.
  void AddLogits(std::span<const int64_t> rows);
  int64_t logit_blocks() const { return logit_ends.size(); }
  // The rows of block `i`, from logit_rows.
  std::span<const int32_t> LogitRows(int64_t i) const;

  const StepCapacity& capacity() const { return capacity_; }
  int64_t token_count() const { return tokens.size(); }
  bool empty() const {
    return tokens.empty() && copies.empty() && page.empty() && logit_rows.empty() &&
           sends_page == 0;
  }

  // The chunks. `pages` and `placed` are the lists of pages and of chunks where the step is
  // computed.
  void Chunks(std::span<const int32_t> pages, std::span<const StepChunk> placed,
              std::vector<SequenceChunk>& out) const;

  // The part of the block that a device reads, for one copy; block_bytes() at most.
  std::span<const std::byte> block() const;
  int64_t block_bytes() const { return block_.bytes(); }
  static int64_t BlockBytes(const StepCapacity& capacity);

  StepKind kind = StepKind::kDecoder;
  DraftRun run;                 // of a drafting layer
  StepList<int32_t> tokens;     // [T]
  StepList<int32_t> positions;  // [T]
  StepList<int64_t> slots;      // [T] as StepContext
  StepList<int32_t>
      sources;  // [T] of a drafting layer: kept rows, or rows of the last draft (run.input)
  StepList<int32_t> keep;           // [T] or empty: where rows of kDecoder are kept; −1: nowhere
  StepList<int32_t> logit_rows;     // of the last kDecoder, or of this draft; block by block
  StepList<StepChunk> chunks;       // neighbours of one path are computed together
  StepList<int32_t> pages;          // of all chunks
  StepList<int32_t> logit_ends;     // the end of each block in logit_rows
  StepList<PageCopy> copies;        // before anything is computed, in order
  StepList<int64_t> group_tokens;   // of all groups of ranks; empty: there is one
  int32_t to_page = 0;              // receives `page`
  int32_t sends_page = 0;           // 1: `to_page` is sent to the leader, and nothing else is done
  std::span<const std::byte> page;  // the bytes of a page, or none; the caller's memory

  // The one list of the fields: Clear and the messages between ranks follow from it.
  template <class Self, class Visit>
  static void VisitFields(Self& step, const Visit& visit) {
    visit(step.kind), visit(step.run.layer), visit(step.run.input);
    visit(step.tokens), visit(step.positions), visit(step.slots), visit(step.sources);
    visit(step.keep), visit(step.logit_rows), visit(step.chunks), visit(step.pages);
    visit(step.logit_ends), visit(step.copies), visit(step.group_tokens);
    visit(step.to_page), visit(step.sends_page), visit(step.page);
  }

 private:
  struct Room;
  Step(const StepCapacity& capacity, Room room);

  StepCapacity capacity_;
  Tensor block_;
};

}  // namespace latte
