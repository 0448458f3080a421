#include "src/engine/run/runner.h"

#include <algorithm>
#include <numeric>

namespace latte {
namespace {

// A view of `buffer` as [rows, columns] f32; grows it when it is too small.
TensorView Fit(Tensor& buffer, int64_t rows, int64_t columns) {
  if (buffer.bytes() < rows * columns * SizeOf(DType::kF32))
    buffer = Tensor(DType::kF32, {std::max<int64_t>(rows * columns, 1)});
  return TensorView(buffer.Ptr<float>(), DType::kF32, {rows, columns});
}

}  // namespace

StepContext Runner::Context() {
  StepContext step;
  step.tokens = tokens_;
  step.positions = positions_;
  step.slots = slots_;
  step.sequences = chunks_;
  step.key_positions = key_positions_;
  step.global_tokens = std::max(global_tokens_, static_cast<int64_t>(tokens_.size()));
  step.arithmetic = options_.arithmetic;
  step.int8_activations = options_.int8_activations;
  step.prefill_workspace_tokens = options_.prefill_workspace_tokens;
  step.cache = &cache_;
  step.workspace = &workspace_;
  step.exec = exec_;
  step.exec.selections = selections_.get();
  return step;
}

void Runner::BuildBatch(std::span<const SequenceChunk> chunks) {
  tokens_.clear();
  positions_.clear();
  slots_.clear();
  chunks_.assign(chunks.begin(), chunks.end());
  const int64_t page_tokens = cache_.spec().page_tokens;
  for (SequenceChunk& chunk : chunks_) {
    chunk.query_start = static_cast<int64_t>(tokens_.size());
    tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    for (int64_t position = chunk.cached_len; position < chunk.total_len(); ++position) {
      positions_.push_back(static_cast<int32_t>(position));
      slots_.push_back(chunk.pages[static_cast<size_t>(position / page_tokens)] * page_tokens +
                       position % page_tokens);
    }
  }
  ListPositions();
}

// Nothing chooses among positions yet: a token lists all positions up to its own, so a sparse path
// gives the bytes of the absorbed one.
void Runner::ListPositions() {
  int64_t longest = 0;
  for (const SequenceChunk& chunk : chunks_)
    if (chunk.path == MlaPath::kSparse) longest = std::max(longest, chunk.total_len());
  key_positions_ = Tensor();
  if (longest == 0) return;
  key_positions_ = Tensor(DType::kI32, {static_cast<int64_t>(tokens_.size()), longest});
  const TensorView lists = key_positions_;
  for (const SequenceChunk& chunk : chunks_) {
    if (chunk.path != MlaPath::kSparse) continue;
    for (int64_t i = 0; i < chunk.count; ++i) {
      int32_t* const list = lists.Row<int32_t>(chunk.query_start + i);
      int32_t* const end = list + chunk.cached_len + i + 1;
      std::iota(list, end, 0);
      std::fill(end, list + longest, -1);
    }
  }
}

TensorView Runner::Forward(std::span<const SequenceChunk> chunks, int64_t global_tokens) {
  global_tokens_ = global_tokens;
  selections_->Clear();
  BuildBatch(chunks);
  const TensorView h = Fit(hidden_, static_cast<int64_t>(tokens_.size()), model_.config().mla.d);
  StepContext step = Context();
  model_.Forward(step, h);
  return h;
}

TensorView Runner::Draft(std::span<const SequenceChunk> chunks, const TensorView& h) {
  BuildBatch(chunks);
  const TensorView z = Fit(draft_, h.shape[0], h.shape[1]);
  StepContext step = Context();
  model_.Draft(step, h, z);
  return z;
}

TensorView Runner::DraftLogits(const TensorView& z) {
  const TensorView logits = Fit(logits_, z.shape[0], model_.config().vocab);
  StepContext step = Context();
  model_.DraftLogits(step, z, logits);
  return logits;
}

TensorView Runner::Logits(const TensorView& h) {
  const TensorView logits = Fit(logits_, h.shape[0], model_.config().vocab);
  StepContext step = Context();
  model_.Logits(step, h, logits);
  return logits;
}

TensorView Runner::LogitsOf(std::span<const int64_t> rows) {
  const int64_t d = model_.config().mla.d;
  const TensorView h = Fit(chosen_, static_cast<int64_t>(rows.size()), d);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(hidden_.Ptr<float>() + rows[i] * d, d, h.Row<float>(static_cast<int64_t>(i)));
  return Logits(h);
}

}  // namespace latte
