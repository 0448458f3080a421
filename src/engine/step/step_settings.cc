#include "src/engine/step/step_settings.h"

#include <algorithm>

#include "src/base/math.h"

namespace latte {
namespace {

// Rows that a sequence owes to the drafting layers: the rows of a page, which are written when it
// is full, and rows whose tokens are not known yet.
int64_t OwedRows(const Settings& settings) {
  constexpr int64_t kDraftingLayers = 16;  // more than any model has
  return settings.options.page_tokens + kMostDrafts + kDraftingLayers;
}

}  // namespace

int64_t DraftRowsPerStep(const Settings& settings) {
  return kDraftRowsAtOnce + settings.options.max_batch_tokens + OwedRows(settings);
}

RunnerOptions OptionsOfRunner(const Settings& settings) {
  RunnerOptions out{settings.dtype, settings.options.prefill_workspace_tokens,
                    settings.options.int8_activations, settings.sparse_from,
                    settings.expert_exchange};
  out.merges_each_split = settings.deterministic == Determinism::kStrict;
  if (settings.drafts_by_mtp)
    out.kept_rows =
        settings.options.max_batch_tokens + settings.options.max_sequences * OwedRows(settings);
  return out;
}

StepCapacity CapacityOf(const Settings& settings, int64_t groups) {
  const EngineOptions& o = settings.options;
  StepCapacity out;
  out.tokens = o.max_batch_tokens;
  // A draft of every sequence runs over the rows that it owes.
  if (settings.drafts_by_mtp)
    out.tokens = std::max(DraftRowsPerStep(settings), o.max_sequences * OwedRows(settings));
  // Drafts are computed beyond the longest sequence.
  const int64_t pages = CeilDiv(o.max_tokens + OwedRows(settings), o.page_tokens);
  out.pages = o.max_sequences * std::min(pages, std::max<int64_t>(settings.pages, 1));
  out.chunks = 2 * o.max_sequences;  // tokens on the sparse path are a chunk of their own
  out.copies = 4 * o.max_sequences;
  // Of every token for the logprobs of a prompt, and again for the tokens after it.
  out.logit_rows = 2 * out.tokens + o.max_sequences;
  out.groups = groups;
  out.page_tokens = o.page_tokens;
  return out;
}

int64_t DeviceStepBytes(const ModelConfig& config, const EngineOptions& options) {
  // Small buffers share a slab of this size (src/tensor/cuda/pool.h).
  constexpr int64_t kSlabBytes = 16 << 20;
  Settings settings;
  EngineOptions& o = settings.options = options;
  if (o.max_tokens == 0 || o.max_tokens > config.max_position) o.max_tokens = config.max_position;
  settings.drafts_by_mtp = NeedsMtp(options, config);
  settings.pages = CeilDiv(o.max_tokens, o.page_tokens);
  const StepCapacity capacity = CapacityOf(settings);
  o.max_batch_tokens = capacity.tokens;
  const int64_t states = settings.drafts_by_mtp ? 2 : 1;  // of the decoder, of a draft
  const int64_t rows = states * capacity.tokens + OptionsOfRunner(settings).kept_rows;
  const int64_t scratch = StepWorkspaceBytes(config, o) - PrefillWorkspaceBytes(config, o);
  const int64_t keys = config.drafts_share_keys ? capacity.tokens * config.indexer.topk : 0;
  const int64_t floats = rows * config.mla.d + keys + kLogitBlockRows * (config.vocab + 1);
  return scratch + floats * SizeOf(DType::kF32) + Step::BlockBytes(capacity) + kSlabBytes;
}

StepCapacity CapacityOf(const Settings& settings, const StepAnnouncer* followers) {
  return CapacityOf(settings, followers == nullptr ? 1 : followers->comms().groups);
}

}  // namespace latte
