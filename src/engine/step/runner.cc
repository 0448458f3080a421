#include "src/engine/step/runner.h"

#include <algorithm>

#include "src/base/math.h"
#include "src/engine/step/largest_step.h"
#include "src/engine/step/page_bytes.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/step_rows.h"
#include "src/tensor/transfer.h"

namespace latte {
namespace {

Tensor Rows(int64_t rows, int64_t columns, const Device& device, DType dtype = DType::kF32) {
  return Tensor(dtype, {std::max<int64_t>(rows, 1), std::max<int64_t>(columns, 1)}, device);
}

// Whether each row is the one after the row before.
bool AreNeighbours(std::span<const int32_t> rows) {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i] != rows[i - 1] + 1) return false;
  return true;
}

bool SharesKeys(const Model& model, const RunnerOptions& options) {
  // With several drafting layers, each chooses for itself.
  return model.config().drafts_share_keys && model.draft_layers() == 1 &&
         options.sparse_from != kNeverSparse;
}

}  // namespace

Runner::Runner(const RunnerParts& parts, const RunnerOptions& options, const StepCapacity& capacity)
    : model_(*parts.model),
      cache_(*parts.cache),
      workspace_(*parts.workspace),
      exec_(parts.exec),
      comms_(parts.announcer == nullptr ? parts.comms : parts.announcer->comms()),
      announcer_(parts.announcer),
      options_(options),
      capacity_(capacity) {
  const Device& device = workspace_.device();
  const ModelConfig& config = model_.config();
  hidden_ = Rows(capacity.tokens, config.mla.d, device);
  logits_ = Rows(kLogitBlockRows, config.vocab, device);
  finite_ = Rows(kLogitBlockRows, 1, device, DType::kI32);
  if (model_.drafts()) draft_ = Rows(capacity.tokens, config.mla.d, device);
  if (options.kept_rows > 0) kept_ = Rows(options.kept_rows, config.mla.d, device);
  if (SharesKeys(model_, options))
    shared_keys_ = Rows(capacity.tokens, config.indexer.topk, device, DType::kI32);
  if (!device.is_host()) {
    placed_ = Tensor(DType::kU8, {Step::BlockBytes(capacity)}, device);
    host_logits_ = Tensor(DType::kU8, {logits_.bytes()});
    host_finite_ = Tensor(DType::kU8, {finite_.bytes()});
  }
  chunks_.reserve(static_cast<size_t>(capacity.chunks));
  if (comms_.cache == nullptr) return;
  owners_ = {comms_.cache->size(), cache_.spec().page_tokens};
  own_ = comms_.cache->rank();
  own_pages_.reserve(static_cast<size_t>(capacity.pages));
  own_slots_.reserve(static_cast<size_t>(capacity.tokens));
}

int64_t Runner::SparseFrom(StepKind kind) const {
  return kind == StepKind::kDraft && SharesKeys(model_, options_) ? 0 : options_.sparse_from;
}

// Values of a list of the step, where kernels read them.
template <class T>
std::span<const T> Runner::Placed(const Step& step, std::span<const T> values) const {
  if (workspace_.device().is_host()) return values;
  const auto* const at = reinterpret_cast<const std::byte*>(values.data());
  return {reinterpret_cast<const T*>(placed_.Ptr<std::byte>() + (at - step.block().data())),
          values.size()};
}

StepContext Runner::Context(const Step& step) {
  StepContext out;
  out.arithmetic = options_.arithmetic;
  out.int8_activations = options_.int8_activations;
  out.prefill_workspace_tokens = options_.prefill_workspace_tokens;
  out.expert_exchange = options_.expert_exchange;
  out.tensor_ranks = comms_.group;
  out.cache_ranks = comms_.cache;
  out.merges_each_split = options_.merges_each_split;
  out.is_spread = comms_.spread;
  if (comms_.groups > 1) {
    out.expert_ranks = comms_.world;
    out.group_tokens = step.group_tokens.values();
  }
  out.cache = &cache_;
  out.workspace = &workspace_;
  out.exec = exec_;
  out.exec.selections = selections_.get();
  return out;
}

// Where this rank has the pages and rows of the step.
void Runner::FindOwnPages(const Step& step) {
  own_pages_.clear();
  own_slots_.clear();
  for (const int32_t page : step.pages.values())
    own_pages_.push_back(owners_.OwnerOf(page) == own_ ? owners_.PlaceOf(page) : -1);
  const int64_t rows = owners_.page_tokens;  // of a page
  for (const int64_t slot : step.slots.values()) {
    const auto page = static_cast<int32_t>(slot / rows);
    own_slots_.push_back(owners_.OwnerOf(page) == own_ ? owners_.PlaceOf(page) * rows + slot % rows
                                                       : -1);
  }
}

StepContext Runner::BatchContext(const Step& step) {
  StepContext out = Context(step);
  std::span<const int32_t> pages = Placed(step, step.pages.values());
  std::span<const int64_t> slots = Placed(step, step.slots.values());
  if (comms_.cache != nullptr) {
    FindOwnPages(step);
    pages = own_pages_;
    slots = own_slots_;
  }
  step.Chunks(pages, Placed(step, step.chunks.values()), chunks_);
  out.tokens = Placed(step, step.tokens.values());
  out.positions = Placed(step, step.positions.values());
  out.slots = slots;
  out.sequences = chunks_;
  return out;
}

// compute(). An error ends the ranks that wait for this one, if there are any.
template <class F>
auto Runner::Guarded(const F& compute) {
  if (announcer_ == nullptr) return compute();
  try {
    return compute();
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    announcer_->Fail(error.what());
    throw;  // not reached
  }
}

void Runner::Run(Step& step) {
  LATTE_CHECK(step_ == nullptr, "a step before all logits of the last one");
  if (announcer_ != nullptr) announcer_->Announce(step, *this);
  Guarded([&] { Compute(step); });
}

StepLogits Runner::NextLogits() {
  LATTE_CHECK(step_ != nullptr, "more logits than the step has");
  const Step& step = *step_;
  const int64_t block = next_block_++;
  if (next_block_ == step.logit_blocks()) step_ = nullptr;
  return Guarded([&] { return ComputeLogits(step, block); });
}

void Runner::Prepare(Step& step, std::span<const MlaPath> paths, int64_t longest) {
  exec_.only_selects = true;
  int64_t bytes = 0;
  {
    const Workspace::Measurement measured(workspace_);
    for (const MlaPath path : paths) {
      FillSmallest(step, path);
      RunAnnounced(step);
      FillLargest(step, path, longest);
      RunAnnounced(step);
      if (options_.kept_rows > 0) PrepareDrafts(step, path, longest);
    }
    bytes = measured.bytes();
  }
  step.Clear();
  exec_.only_selects = false;
  // A step on several paths has the lists of positions on all of them.
  if (options_.sparse_from != kNeverSparse)
    bytes += RoundUp(
        capacity_.tokens * std::min(model_.config().indexer.topk, longest) * SizeOf(DType::kI32),
        64);
  workspace_.Reserve(std::max(bytes, cache_.spec().bytes_per_page()));
}

void Runner::PrepareDrafts(Step& step, MlaPath path, int64_t longest) {
  for (int64_t layer = 0; layer < model_.draft_layers(); ++layer)
    for (const DraftRun run :
         {DraftRun{layer, DraftInput::kDecoder}, DraftRun{layer, DraftInput::kDraft}})
      for (const StepKind kind : {StepKind::kDraftRows, StepKind::kDraft}) {
        FillLargest(step, path, longest);
        step.kind = kind;
        step.run = run;
        // A draft has logits of its own rows; cache rows alone have none.
        if (kind == StepKind::kDraftRows) step.logit_rows.Clear(), step.logit_ends.Clear();
        for (int64_t i = 0; i < step.token_count(); ++i) step.sources.Add(0);
        RunAnnounced(step);
      }
}

void Runner::RunAnnounced(Step& step) {
  Compute(step);
  for (int64_t i = 0; i < step.logit_blocks(); ++i) NextLogits();
}

void Runner::Abandon(const std::string& why) {
  if (std::exchange(step_, nullptr) != nullptr && announcer_ != nullptr) announcer_->Fail(why);
}

void Runner::FinishStep() {
  if (announcer_ != nullptr) announcer_->Finish(*this);
}

void Runner::Compute(const Step& step) {
  if (!placed_.view().empty() && !exec_.only_selects)
    workspace_.device().CopyFromHost(placed_.Ptr<std::byte>(), step.block().data(),
                                     std::ssize(step.block()), exec_.stream);
  if (step.sends_page != 0) return SendPage(step.to_page);
  MovePages(step);
  const Workspace::Scope scope(workspace_);
  StepContext context = BatchContext(step);
  if (step.token_count() > 0 || context.token_count_of_groups() > 0) RunModel(step, context);
  if (step.logit_blocks() == 0) return;
  step_ = &step;
  next_block_ = 0;
}

void Runner::MovePages(const Step& step) {
  // The owner of a copy is that of its original.
  for (const auto [from, to] : step.copies.values())
    if (owners_.OwnerOf(from) == own_)
      CopyPage(cache_, owners_.PlaceOf(from), owners_.PlaceOf(to), exec_);
  if (!step.page.empty() && owners_.OwnerOf(step.to_page) == own_)
    LoadPage(cache_, owners_.PlaceOf(step.to_page), step.page, workspace_, exec_);
}

std::vector<std::byte> Runner::SavePage(int32_t page) {
  if (owners_.OwnerOf(page) == own_)
    return latte::SavePage(cache_, owners_.PlaceOf(page), workspace_, exec_);
  Step step({.page_tokens = capacity_.page_tokens});
  step.to_page = page;
  step.sends_page = 1;
  Run(step);
  return std::move(sent_);
}

// The leader is owner 0 of the first ranks of its group, or of the groups, which have all pages
// together.
void Runner::SendPage(int32_t page) {
  if (comms_.cache == nullptr) return;
  if (comms_.group->rank() >= (comms_.spread ? 1 : owners_.count)) return;
  std::vector<std::byte> own;
  if (owners_.OwnerOf(page) == own_)
    own = latte::SavePage(cache_, owners_.PlaceOf(page), workspace_, exec_);
  std::vector<int64_t> sends(static_cast<size_t>(owners_.count));
  std::vector<int64_t> receives(static_cast<size_t>(owners_.count));
  sends.front() = std::ssize(own);
  if (own_ == 0)
    receives[static_cast<size_t>(owners_.OwnerOf(page))] = cache_.spec().bytes_per_page();
  sent_.resize(own_ == 0 ? static_cast<size_t>(cache_.spec().bytes_per_page()) : 0);
  comms_.cache->AllToAll(own, sends, sent_, receives);
}

void Runner::RunModel(const Step& step, StepContext& context) {
  const int64_t rows = step.token_count();
  const int64_t d = model_.config().mla.d;
  const TensorView none(nullptr, DType::kF32, {0, d});
  if (step.kind == StepKind::kDecoder) {
    selections_->Clear();
    if (rows > 0) hidden_rows_ = rows;
    model_.Forward(context, rows == 0 ? none : hidden());
    if (!step.keep.empty())
      latte::Run<PackDraftsOp>({hidden(), Placed(step, step.keep.values()), kept_}, exec_);
    return;
  }
  // Rows of kept states, or of the draft before.
  const TensorView& from = step.run.input == DraftInput::kDecoder ? kept_.view() : draft_.view();
  const TensorView h = rows == 0 ? none : RowsOf(from, step, step.sources.values());
  if (step.kind == StepKind::kDraftRows) return model_.AppendDraftRows(context, step.run, h);
  if (rows > 0) draft_rows_ = rows;
  if (rows > 0 && SharesKeys(model_, options_)) PlaceSharedKeys(step, context);
  model_.Draft(context, step.run, h, rows == 0 ? none : drafted());
}

// Later drafts attend to the keys of the first draft.
void Runner::PlaceSharedKeys(const Step& step, StepContext& context) {
  const int64_t rows = step.token_count();
  context.keys_are_chosen = step.run.input == DraftInput::kDraft;
  if (!context.keys_are_chosen) {
    int64_t keys = 1;
    for (const SequenceChunk& chunk : context.sequences) keys = std::max(keys, chunk.total_len());
    keys = std::min(keys, model_.config().indexer.topk);
    first_choice_ = TensorView(shared_keys_.Ptr<int32_t>(), DType::kI32, {rows, keys});
  }
  context.key_positions = first_choice_.Slice(0, 0, rows);
}

TensorView Runner::hidden() const { return hidden_.view().Slice(0, 0, hidden_rows_); }
TensorView Runner::drafted() const { return draft_.view().Slice(0, 0, draft_rows_); }

// x[rows,:]; `rows` are values of a list of the step.
TensorView Runner::RowsOf(const TensorView& x, const Step& step, std::span<const int32_t> rows) {
  if (AreNeighbours(rows)) return x.Slice(0, rows.front(), rows.back() + 1);
  const TensorView out = workspace_.Take(DType::kF32, {std::ssize(rows), x.shape[1]});
  latte::Run<GatherOp>({x, Placed(step, rows), out}, exec_);
  return out;
}

StepLogits Runner::ComputeLogits(const Step& step, int64_t block) {
  const Workspace::Scope scope(workspace_);
  const Device& device = workspace_.device();
  const std::span<const int32_t> rows = step.LogitRows(block);
  const bool of_draft = step.kind != StepKind::kDecoder;
  const TensorView h = RowsOf(of_draft ? drafted() : hidden(), step, rows);
  const TensorView logits = logits_.view().Slice(0, 0, h.shape[0]);
  StepContext context = Context(step);
  StepLogits out;
  if (of_draft) {
    model_.DraftLogits(context, step.run.layer, h, logits);
  } else {
    const TensorView finite = finite_.view().Slice(0, 0, h.shape[0]);
    latte::Run<FiniteRowsOp>({h, {finite.Ptr<int32_t>(), rows.size()}}, exec_);
    model_.Logits(context, h, logits);
    if (exec_.only_selects) return out;
    const TensorView flags = HostView(finite, device, exec_.stream, host_finite_);
    out.finite = {flags.Ptr<const int32_t>(), rows.size()};
  }
  if (!exec_.only_selects) out.logits = HostView(logits, device, exec_.stream, host_logits_);
  return out;
}

}  // namespace latte
