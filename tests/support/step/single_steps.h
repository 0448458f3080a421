// Single steps of a model, each with its results, for tests that compare them.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "src/engine/step/runner.h"

namespace latte::testing_support {

// Keeps the hidden states of the last Forward, from which drafts are made.
class SingleSteps {
 public:
  SingleSteps(const RunnerParts& parts, RunnerOptions options)
      : step_(Capacity(parts)), runner_(parts, WithRows(options), step_.capacity()) {}

  // Tokens of each group of ranks in the next steps.
  std::vector<int64_t> group_tokens;

  // Hidden states [T, D] of `chunks`, valid until the next call.
  TensorView Forward(std::span<const SequenceChunk> chunks) {
    Begin(chunks, StepKind::kDecoder);
    for (int64_t row = 0; row < step_.token_count(); ++row)
      step_.keep.Add(static_cast<int32_t>(row));
    runner_.Run(step_);
    return step_.token_count() == 0 ? runner_.hidden().Slice(0, 0, 0) : runner_.hidden();
  }

  // Hidden states of a drafting layer over `chunks`, from rows `sources` of the last Forward or
  // Draft, as run.input says. Without sources: from the first rows.
  TensorView Draft(std::span<const SequenceChunk> chunks, DraftRun run = {},
                   std::vector<int32_t> sources = {}) {
    RunDraft(chunks, StepKind::kDraft, run, std::move(sources));
    return runner_.drafted().Slice(0, 0, step_.token_count());
  }
  void AppendDraftRows(std::span<const SequenceChunk> chunks, DraftRun run = {}) {
    RunDraft(chunks, StepKind::kDraftRows, run, {});
  }

  // Logits [M, vocab] of rows of the last Forward, or of the last Draft; valid until the next call.
  TensorView Logits(std::span<const int64_t> rows) {
    return LogitsOf(StepKind::kDecoder, {}, rows);
  }
  TensorView DraftLogits(std::span<const int64_t> rows, int64_t layer = 0) {
    return LogitsOf(StepKind::kDraft, {.layer = layer}, rows);
  }
  TensorView AllLogits() { return Logits(First(runner_.hidden().shape[0])); }
  TensorView AllDraftLogits(int64_t layer = 0) {
    return DraftLogits(First(runner_.drafted().shape[0]), layer);
  }

  Runner& runner() { return runner_; }

 private:
  static constexpr int64_t kMostTokens = 1024;

  static StepCapacity Capacity(const RunnerParts& parts) {
    return {.tokens = kMostTokens,
            .chunks = 64,
            .pages = 64 * parts.cache->pages(),
            .copies = 16,
            .logit_rows = kMostTokens,
            .groups = parts.comms.groups,
            .page_tokens = parts.cache->spec().page_tokens};
  }
  static RunnerOptions WithRows(RunnerOptions options) {
    options.kept_rows = kMostTokens;
    return options;
  }
  static std::vector<int64_t> First(int64_t count) {
    std::vector<int64_t> out(static_cast<size_t>(count));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }

  void Begin(std::span<const SequenceChunk> chunks, StepKind kind) {
    step_.Clear();
    step_.kind = kind;
    for (const int64_t count : group_tokens) step_.group_tokens.Add(count);
    for (const SequenceChunk& chunk : chunks) step_.AddChunk(chunk, runner_.SparseFrom(kind));
  }

  void RunDraft(std::span<const SequenceChunk> chunks, StepKind kind, DraftRun run,
                std::vector<int32_t> sources) {
    Begin(chunks, kind);
    step_.run = run;
    if (sources.empty())
      for (int64_t row = 0; row < step_.token_count(); ++row)
        sources.push_back(static_cast<int32_t>(row));
    for (const int32_t row : sources) step_.sources.Add(row);
    runner_.Run(step_);
  }

  TensorView LogitsOf(StepKind kind, DraftRun run, std::span<const int64_t> rows) {
    step_.Clear();
    step_.kind = kind;
    step_.run = run;
    step_.AddLogits(rows);
    runner_.Run(step_);
    logits_.clear();
    int64_t vocab = 1;
    for (int64_t i = 0; i < step_.logit_blocks(); ++i) {
      const TensorView block = runner_.NextLogits().logits;
      vocab = block.shape[1];
      logits_.insert(logits_.end(), block.Ptr<float>(), block.Ptr<float>() + block.elements());
    }
    return TensorView(logits_.data(), DType::kF32, {std::ssize(rows), vocab});
  }

  Step step_;
  Runner runner_;
  std::vector<float> logits_;
};

}  // namespace latte::testing_support
