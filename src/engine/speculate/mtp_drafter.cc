#include "src/engine/speculate/mtp_drafter.h"

#include <algorithm>

#include "src/engine/output/output_streams.h"
#include "src/engine/sampling/sampler.h"
#include "src/engine/step/step_settings.h"

namespace latte {
namespace {

// Token `i` of a sequence with its drafts.
int32_t TokenAt(const Sequence& s, int64_t i) {
  return i < s.length() ? s.tokens[static_cast<size_t>(i)]
                        : s.drafts[static_cast<size_t>(i - s.length())];
}

// Whether a page that is full lacks rows.
bool OwesWholePage(const Output& output, int64_t page_tokens) {
  const int64_t whole = output.sequence.cached_len / page_tokens * page_tokens;
  return output.draft_rows.begin < whole;
}

DraftRun RunOf(int64_t depth, int64_t layer) {
  return {layer, depth == 0 ? DraftInput::kDecoder : DraftInput::kDraft};
}

// Whether a step computes a part of a prompt.
bool IsOfPrompt(const SequenceStep& step) {
  return step.chunk.count - step.drafts > 1 || !step.samples || step.repeats;
}

}  // namespace

int64_t MtpDrafter::KnownEnd(const Output& output) const {
  return std::min(output.draft_rows.end(), output.sequence.length() - parts_.layers);
}

void MtpDrafter::DropFirst(DraftRows& rows, int64_t count) {
  const auto dropped = rows.slots.begin() + count;
  kept_.Release({rows.slots.begin(), dropped});
  rows.slots.erase(rows.slots.begin(), dropped);
  rows.begin += count;
}

void MtpDrafter::DropLast(DraftRows& rows, int64_t count) {
  const auto dropped = rows.slots.end() - count;
  kept_.Release({dropped, rows.slots.end()});
  rows.slots.erase(dropped, rows.slots.end());
}

// Rows without a slot are lost, and so are those before them: there is no order without them.
void MtpDrafter::KeepRows(DraftRows& rows, std::span<int32_t> more) {
  rows.slots.insert(rows.slots.end(), more.begin(), more.end());
  if (std::ranges::find(more, -1) != more.end()) DropFirst(rows, std::ssize(rows.slots));
  std::ranges::fill(more, -1);
}

// All rows of the step: which drafts are right is not known yet.
void MtpDrafter::Keep(const StepPlan& plan, Step& step) {
  kept_.Release(of_step_);
  of_step_.clear();
  if (plan.tokens == 0) return;
  for (int64_t row = 0; row < step.token_count(); ++row) {
    of_step_.push_back(kept_.Take());
    step.keep.Add(of_step_.back());
  }
}

bool MtpDrafter::WritesAfter(const StepPlan& plan) const {
  return std::ranges::any_of(plan.steps, IsOfPrompt);
}

void MtpDrafter::Computed(const StepPlan& plan, bool may_run) {
  std::vector<Owing> owing;
  const std::span<int32_t> all(of_step_);
  size_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    Output& output = *step.sequence->output;
    DraftRows& rows = output.draft_rows;
    const int64_t known = step.chunk.cached_len - rows.begin;
    if (known >= 0 && known < std::ssize(rows.slots)) {
      DropLast(rows, std::ssize(rows.slots) - known);  // it computes tokens again
    } else if (rows.end() != step.chunk.cached_len) {
      DropFirst(rows, std::ssize(rows.slots));
      rows.begin = step.chunk.cached_len;  // it has just been admitted, perhaps again
    }
    KeepRows(rows, all.subspan(row, static_cast<size_t>(step.chunk.count - step.drafts)));
    row += static_cast<size_t>(step.chunk.count);
    if (IsOfPrompt(step)) owing.push_back({&output, KnownEnd(output)});
  }
  if (may_run) WriteOwed(owing);
}

void MtpDrafter::Accepted(Output& output, int64_t row) {
  KeepRows(output.draft_rows, std::span(of_step_).subspan(static_cast<size_t>(row), 1));
}

// Other outputs may still be sampled from the step's logits, so the rows are written after them.
void MtpDrafter::Leave(Output& output) {
  Sequence& s = output.sequence;
  DraftRows& rows = output.draft_rows;
  const int64_t end = KnownEnd(output);
  if (s.state == SequenceState::kRunning && OwesWholePage(output, parts_.cache->page_tokens()) &&
      end > rows.begin && TakePages(s, rows.begin, end)) {
    DropLast(rows, rows.end() - end);
    parts_.cache->Share(s.pages);
    left_.push_back({&s, std::exchange(rows, {}), s.pages});
  }
  DropFirst(rows, std::ssize(rows.slots));
}

void MtpDrafter::EndStep() {
  kept_.Release(of_step_);
  of_step_.clear();
  WriteLeft();
}

bool MtpDrafter::TakePages(Sequence& s, int64_t begin, int64_t end) {
  const int64_t page_tokens = parts_.cache->page_tokens();
  for (int64_t at = begin; at < end; at = (at / page_tokens + 1) * page_tokens)
    if (!parts_.cache->MakeOwn(s.pages, at)) return false;
  return true;
}

void MtpDrafter::WriteOwed(std::span<const Owing> owing) {
  std::vector<Rows> writes;
  for (const auto& [output, end] : owing) {
    const Rows write = Owed(*output, end);
    if (write.count() > 0 && TakePages(output->sequence, write.begin, write.end))
      writes.push_back(write);
  }
  WriteRows(writes);
}

// Without rows, it still moves the pages that were taken.
void MtpDrafter::WriteRows(std::span<const Rows> writes) {
  const int64_t most = step_.capacity().tokens;
  std::vector<Rows> at_once;
  int64_t rows = 0;
  for (Rows rest : writes) {
    while (rest.count() > 0) {
      Rows part = rest;
      part.end = std::min(rest.end, rest.begin + most - rows);
      rest.begin = part.end;
      at_once.push_back(part);
      rows += part.count();
      if (rows < kDraftRowsAtOnce) continue;
      WriteAtOnce(at_once);
      at_once.clear();
      rows = 0;
    }
  }
  WriteAtOnce(at_once);
}

void MtpDrafter::WriteAtOnce(std::span<const Rows> writes) {
  step_.Clear();
  parts_.add_page_ops(step_);
  if (writes.empty() && !step_.empty()) parts_.runner->Run(step_);
  const int64_t last = parts_.layers - 1;
  for (int64_t layer = 0; layer <= last && !writes.empty(); ++layer) {
    if (layer > 0) step_.Clear();
    step_.kind = layer < last ? StepKind::kDraft : StepKind::kDraftRows;
    step_.run = RunOf(layer, layer);
    AddRows(writes, layer + 1);
    if (layer == 0) AddKeptSources(writes);
    for (int64_t row = 0; layer > 0 && row < step_.token_count(); ++row)
      step_.sources.Add(static_cast<int32_t>(row));
    parts_.runner->Run(step_);
  }
  for (const Rows& write : writes) DropFirst(*write.kept, write.count());
}

void MtpDrafter::WriteLeft() {
  if (left_.empty()) return;
  std::vector<Rows> writes;
  for (LeftRows& one : left_)
    writes.push_back({one.sequence, &one.rows, &one.pages, one.rows.begin, one.rows.end()});
  WriteRows(writes);
  for (LeftRows& one : left_) parts_.cache->Release(one.pages);
  left_.clear();
}

// The kept hidden states of rows that are owed, from the first on.
void MtpDrafter::AddKeptSources(std::span<const Rows> rows) {
  for (const Rows& one : rows)
    for (int64_t i = one.begin; i < one.end; ++i)
      step_.sources.Add(one.kept->slots[static_cast<size_t>(i - one.kept->begin)]);
}

void MtpDrafter::AddRows(std::span<const Rows> rows, int64_t ahead) {
  for (const Rows& one : rows) {
    tokens_.clear();
    for (int64_t t = one.begin; t < one.end; ++t)
      tokens_.push_back(TokenAt(*one.sequence, t + ahead));
    step_.AddChunk(SequenceChunk::Of(tokens_, one.begin, parts_.path, *one.pages),
                   parts_.runner->SparseFrom(step_.kind));
  }
}

void MtpDrafter::Propose(std::span<const DraftJob> jobs) {
  WriteLeft();
  std::vector<Owing> owing;
  std::vector<DraftJob> drafting;
  for (const DraftJob& job : jobs) {
    Output& output = *job.output;
    Sequence& s = output.sequence;
    const bool drafts = job.count > 0 && output.draft_rows.end() == s.cached_len &&
                        TakePages(s, output.draft_rows.begin, s.cached_len + job.count - 1);
    if (drafts) drafting.push_back(job);
    // The row of the last computed token is the draft's own.
    const int64_t end = std::min(KnownEnd(output), drafts ? s.cached_len - 1 : s.cached_len);
    if (drafts || OwesWholePage(output, parts_.cache->page_tokens()))
      owing.push_back({&output, end});
  }
  WriteOwed(owing);
  std::erase_if(drafting, [this](const DraftJob& job) {
    const int64_t last = job.output->sequence.cached_len - 1;
    const int64_t begin = job.output->draft_rows.begin;
    return begin < std::min(KnownEnd(*job.output), last) || begin > last;
  });
  std::ranges::stable_sort(drafting, std::ranges::greater(), &DraftJob::count);
  for (int64_t depth = 0; depth < kMostDrafts; ++depth) {
    const auto end =
        std::ranges::find_if(drafting, [depth](const DraftJob& job) { return job.count <= depth; });
    Draft({drafting.begin(), end}, depth);
  }
  for (const DraftJob& job : drafting) {
    DraftRows& rows = job.output->draft_rows;
    DropFirst(rows, std::max<int64_t>(KnownEnd(*job.output) - rows.begin, 0));
  }
}

// Layers draft in turn. In the first turn they run over the rows that are owed, where their last
// tokens are drafts; after that over a row of the draft alone, at the next position.
void MtpDrafter::Draft(std::span<const DraftJob> jobs, int64_t depth) {
  if (jobs.empty()) return;
  const int64_t layer = depth % parts_.layers;
  const int64_t turn = depth / parts_.layers;
  std::vector<Rows> rows;
  std::vector<int64_t> last;
  int64_t count = 0;
  for (const DraftJob& job : jobs) {
    Rows one = Owed(*job.output, job.output->sequence.cached_len + turn);
    if (turn > 0) one.begin = one.end - 1;
    rows.push_back(one);
    count += one.count();
    last.push_back(count - 1);
  }
  step_.Clear();
  step_.kind = StepKind::kDraft;
  step_.run = RunOf(depth, layer);
  AddRows(rows, depth + 1 - turn);
  if (depth == 0) AddKeptSources(rows);
  // A turn begins with the last row of each sequence; within a turn, all rows go on.
  for (int64_t i = 0; depth > 0 && i < count; ++i)
    step_.sources.Add(static_cast<int32_t>(layer == 0 ? last_[static_cast<size_t>(i)] : i));
  step_.AddLogits(last);
  parts_.runner->Run(step_);
  last_ = std::move(last);
  while (!jobs.empty()) {
    const size_t in_block = std::min<size_t>(jobs.size(), kLogitBlockRows);
    SampleBlock(jobs.first(in_block));
    jobs = jobs.subspan(in_block);
  }
}

// A draft is sampled with the random number of the token that it guesses: the more alike the two
// distributions are, the more often the tokens are equal.
void MtpDrafter::SampleBlock(std::span<const DraftJob> jobs) {
  const StepLogits block = parts_.runner->NextLogits();
  std::vector<SampleInput> inputs;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Output& output = *jobs[i].output;
    SampleInput& input = inputs.emplace_back();
    input.logits = {block.logits.Row<float>(static_cast<int64_t>(i)),
                    static_cast<size_t>(block.logits.shape[1])};
    input.params = &output.params;
    input.history = &output.history;
    input.banned = BannedTokens(output);
    input.position = output.sequence.length() + std::ssize(output.sequence.drafts);
    input.machine = parts_.host;
  }
  const std::vector<Result<SampledToken>> sampled = SampleAll(inputs, *parts_.threads);
  // Where there is no number to sample from, any guess will do.
  for (size_t i = 0; i < jobs.size(); ++i)
    jobs[i].output->sequence.drafts.push_back(sampled[i] ? sampled[i]->token : 0);
}

}  // namespace latte
