// One call of the model, or one change of the cache, as a message (wire.h). The leader of a group of ranks
// sends it to the others before it does the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "latte/status.h"

#include "src/models/model.h"

namespace latte {

enum class StepCallKind : int64_t {
  kForward,
  kLogits,
  kDraft,
  kAppendDraftRows,
  kDraftLogits,
  kCopyPage,
  kLoadPage,
  kOpen,    // a model
  kStart,   // with a new cache
  kGroups,  // each group with an engine of its own, until these end
  kStop,
};
inline constexpr int64_t kStepCallKinds = 11;

// Views of the caller's memory, or of the message that was read.
struct StepCall {
  StepCallKind kind = StepCallKind::kStop;
  std::span<const int32_t> tokens;
  std::span<const int32_t> positions;
  std::span<const int64_t> slots;
  std::vector<SequenceChunk> sequences;  // without tokens
  DraftRun run;
  // [T, K] i32: of a draft that attends to the keys of the draft before; otherwise empty.
  TensorView key_positions;
  TensorView rows;                    // [M, D] f32: what the call reads
  int32_t from = 0, to = 0;           // pages
  std::span<const std::byte> page;    // the contents of page `to`, or what a kind that begins takes
  std::vector<int64_t> group_tokens;  // of all groups of ranks; empty: there is one
};

std::vector<std::byte> WriteStepCall(const StepCall& call);

// Errors: kCorrupt for a message that WriteStepCall does not write: another kind, a length that is
// negative or beyond the end.
[[nodiscard]] Result<StepCall> ReadStepCall(std::span<const std::byte> message);

}  // namespace latte
