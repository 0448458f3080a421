#include "src/engine/step/runner.h"

#include <algorithm>

#include "src/base/math.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/registry.h"
#include "src/tensor/transfer.h"

namespace latte {
namespace {

// A view of `buffer` as [rows, columns] f32; grows it when it is too small.
TensorView Fit(Tensor& buffer, int64_t rows, int64_t columns, const Device& device) {
  if (buffer.view().empty() || buffer.bytes() < rows * columns * SizeOf(DType::kF32))
    buffer = Tensor(DType::kF32, {std::max<int64_t>(rows * columns, 1)}, device);
  return TensorView(buffer.Ptr<float>(), DType::kF32, {rows, columns});
}

}  // namespace

// `values` of the host where kernels read them, valid until the workspace's scope ends.
template <class T>
std::span<const T> Runner::OnDevice(std::span<const T> values) {
  const Device& device = workspace_.device();
  if (device.is_host()) return values;
  const TensorView out = workspace_.Take(sizeof(T) == 8 ? DType::kI64 : DType::kI32,
                                         {static_cast<int64_t>(values.size())});
  device.CopyFromHost(out.data, values.data(), static_cast<int64_t>(values.size_bytes()),
                      exec_.stream);
  return {out.Ptr<const T>(), values.size()};
}

// One copy for the page tables of all chunks.
void Runner::PlacePages() {
  if (workspace_.device().is_host()) return;
  pages_.clear();
  for (const SequenceChunk& chunk : chunks_)
    pages_.insert(pages_.end(), chunk.pages.begin(), chunk.pages.end());
  std::span<const int32_t> rest = OnDevice(std::span<const int32_t>(pages_));
  for (SequenceChunk& chunk : chunks_) {
    const size_t count = chunk.pages.size();
    chunk.pages = rest.first(count);
    rest = rest.subspan(count);
  }
}

StepContext Runner::Context() {
  StepContext step;
  step.arithmetic = options_.arithmetic;
  step.int8_activations = options_.int8_activations;
  step.prefill_workspace_tokens = options_.prefill_workspace_tokens;
  step.expert_exchange = options_.expert_exchange;
  step.cache = &cache_;
  step.workspace = &workspace_;
  step.exec = exec_;
  step.exec.selections = selections_.get();
  return step;
}

StepContext Runner::BatchContext() {
  StepContext step = Context();
  step.tokens = OnDevice(std::span<const int32_t>(tokens_));
  step.positions = OnDevice(std::span<const int32_t>(positions_));
  step.slots = OnDevice(std::span<const int64_t>(slots_));
  PlacePages();
  step.sequences = chunks_;
  return step;
}

void Runner::BuildBatch(std::span<const SequenceChunk> chunks, int64_t sparse_from) {
  tokens_.clear();
  positions_.clear();
  slots_.clear();
  chunks_.clear();
  const int64_t page_tokens = cache_.spec().page_tokens;
  for (SequenceChunk chunk : chunks) {
    chunk.query_start = static_cast<int64_t>(tokens_.size());
    tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    for (int64_t position = chunk.cached_len; position < chunk.total_len(); ++position) {
      positions_.push_back(static_cast<int32_t>(position));
      slots_.push_back(chunk.pages[static_cast<size_t>(position / page_tokens)] * page_tokens +
                       position % page_tokens);
    }
    AddChunk(chunk, sparse_from);
  }
}

// As two chunks, if only its last tokens choose their keys. Keys of all tokens are appended before any
// token attends, so the division changes no byte.
void Runner::AddChunk(const SequenceChunk& chunk, int64_t sparse_from) {
  const int64_t dense = std::clamp<int64_t>(sparse_from - chunk.cached_len, 0, chunk.count);
  if (dense == chunk.count) {
    chunks_.push_back(chunk);
    return;
  }
  SequenceChunk first = chunk;
  first.tokens = chunk.tokens.first(static_cast<size_t>(dense));
  first.count = dense;
  first.pages =
      chunk.pages.first(static_cast<size_t>(CeilDiv(first.total_len(), cache_.spec().page_tokens)));
  if (dense > 0) chunks_.push_back(first);
  SequenceChunk second = chunk;
  second.tokens = chunk.tokens.subspan(static_cast<size_t>(dense));
  second.query_start += dense;
  second.cached_len += dense;
  second.count -= dense;
  second.path = MlaPath::kSparse;
  chunks_.push_back(second);
}

TensorView Runner::Forward(std::span<const SequenceChunk> chunks) {
  const Workspace::Scope scope(workspace_);
  selections_->Clear();
  BuildBatch(chunks, options_.sparse_from);
  hidden_rows_ = static_cast<int64_t>(tokens_.size());
  const TensorView h = Fit(hidden_, hidden_rows_, model_.config().mla.d, workspace_.device());
  StepContext step = BatchContext();
  model_.Forward(step, h);
  return h;
}

void Runner::FinishStep() {
  const Workspace::Scope scope(workspace_);
  StepContext step = Context();
  model_.FinishStep(step);
}

TensorView Runner::Draft(std::span<const SequenceChunk> chunks, const TensorView& h, DraftRun run) {
  const Workspace::Scope scope(workspace_);
  // A list of few positions is a list of all.
  BuildBatch(chunks, DraftsShareKeys() ? 0 : options_.sparse_from);
  const TensorView z = Fit(draft_, h.shape[0], h.shape[1], workspace_.device());
  StepContext step = BatchContext();
  if (DraftsShareKeys()) PlaceSharedKeys(run, step);
  model_.Draft(step, run, h, z);
  return z;
}

// With several drafting layers, each chooses for itself.
bool Runner::DraftsShareKeys() const {
  return model_.config().drafts_share_keys && model_.draft_layers() == 1 &&
         options_.sparse_from != kNeverSparse;
}

void Runner::PlaceSharedKeys(DraftRun run, StepContext& step) {
  const int64_t rows = step.token_count();
  step.keys_are_chosen = run.input == DraftInput::kDraft;
  if (!step.keys_are_chosen) {
    int64_t keys = 1;
    for (const SequenceChunk& chunk : step.sequences) keys = std::max(keys, chunk.total_len());
    keys = std::min(keys, model_.config().indexer.topk);
    const TensorView room = Fit(shared_keys_, rows, keys, workspace_.device());
    first_choice_ = TensorView(room.Ptr<int32_t>(), DType::kI32, {rows, keys});
  }
  step.key_positions = first_choice_.Slice(0, 0, rows);
}

void Runner::AppendDraftRows(std::span<const SequenceChunk> chunks, const TensorView& h,
                             DraftRun run) {
  const Workspace::Scope scope(workspace_);
  BuildBatch(chunks, options_.sparse_from);
  StepContext step = BatchContext();
  model_.AppendDraftRows(step, run, h);
}

template <class F>
TensorView Runner::HostLogits(int64_t rows, const F& compute) {
  const Device& device = workspace_.device();
  const TensorView logits = Fit(logits_, rows, model_.config().vocab, device);
  StepContext step = Context();
  compute(step, logits);
  return HostView(logits, device, exec_.stream, host_logits_);
}

TensorView Runner::DraftLogits(const TensorView& z, int64_t layer) {
  const Workspace::Scope scope(workspace_);
  return HostLogits(z.shape[0], [&](StepContext& step, const TensorView& logits) {
    model_.DraftLogits(step, layer, z, logits);
  });
}

TensorView Runner::Pick(const TensorView& z, std::span<const int64_t> rows) {
  const Workspace::Scope scope(workspace_);
  const TensorView out = Fit(picked_, std::ssize(rows), z.shape[1], workspace_.device());
  Gather(z, rows, out);
  return out;
}

void Runner::Gather(const TensorView& h, std::span<const int64_t> rows, const TensorView& out) {
  const std::vector<int32_t> ids(rows.begin(), rows.end());
  Run<GatherOp>({h, OnDevice(std::span<const int32_t>(ids)), out}, exec_);
}

TensorView Runner::Logits(const TensorView& h) {
  const Workspace::Scope scope(workspace_);
  return HostLogits(h.shape[0], [&](StepContext& step, const TensorView& logits) {
    model_.Logits(step, h, logits);
  });
}

TensorView Runner::LogitsOf(std::span<const int64_t> rows) {
  const Workspace::Scope scope(workspace_);
  const int64_t d = model_.config().mla.d;
  const TensorView h = workspace_.Take(DType::kF32, {std::ssize(rows), d});
  Gather({hidden_.Ptr<float>(), DType::kF32, {hidden_rows_, d}}, rows, h);
  return Logits(h);
}

TensorView Runner::ToHost(const TensorView& h) {
  return HostView(h, workspace_.device(), exec_.stream, host_hidden_);
}

TensorView Runner::FromHost(std::span<const float> rows) {
  const int64_t d = model_.config().mla.d;
  const int64_t count = static_cast<int64_t>(rows.size()) / d;
  const Device& device = workspace_.device();
  // Steps only read them.
  if (device.is_host()) return {const_cast<float*>(rows.data()), DType::kF32, {count, d}};
  const TensorView out = Fit(placed_rows_, count, d, device);
  device.CopyFromHost(out.data, rows.data(), static_cast<int64_t>(rows.size_bytes()), exec_.stream);
  return out;
}

}  // namespace latte
