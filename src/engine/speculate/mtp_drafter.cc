#include "src/engine/speculate/mtp_drafter.h"

#include <algorithm>

#include "src/engine/output/output_streams.h"
#include "src/engine/sampling/sampler.h"

namespace latte {
namespace {

// Logits are computed in blocks of rows, as the logits of a step are.
constexpr int64_t kRowsPerBlock = 64;

// Rows that are written in one call, roughly: as many as a step has tokens.
constexpr int64_t kRowsAtOnce = 512;

int64_t EndOf(const DraftRows& rows) { return rows.begin + rows.count; }

// The end of the rows whose next token is known.
int64_t KnownEnd(const Output& output) {
  return std::min(EndOf(output.draft_rows), output.sequence.length() - 1);
}

// Whether a page that is full lacks rows.
bool OwesWholePage(const Output& output, int64_t page_tokens) {
  const int64_t whole = output.sequence.cached_len / page_tokens * page_tokens;
  return output.draft_rows.begin < whole;
}

void Keep(DraftRows& rows, const TensorView& more) {
  const auto* first = more.Ptr<float>();
  rows.hidden.insert(rows.hidden.end(), first, first + more.elements());
  rows.count += more.shape[0];
}

// The hidden states of the first `count` rows.
std::span<const float> First(const DraftRows& rows, int64_t count) {
  const int64_t width = std::ssize(rows.hidden) / std::max<int64_t>(rows.count, 1);
  return std::span(rows.hidden).first(static_cast<size_t>(count * width));
}

void DropFirst(DraftRows& rows, int64_t count) {
  const auto dropped = static_cast<std::ptrdiff_t>(First(rows, count).size());
  rows.hidden.erase(rows.hidden.begin(), rows.hidden.begin() + dropped);
  rows.begin += count;
  rows.count -= count;
}

}  // namespace

void MtpDrafter::Computed(const StepPlan& plan, const TensorView& h) {
  const TensorView all = parts_.runner->ToHost(h);
  std::vector<Write> writes;
  int64_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    Output& output = *step.sequence->output;
    DraftRows& rows = output.draft_rows;
    // It has just been admitted, perhaps again.
    if (EndOf(rows) != step.chunk.cached_len) rows = {.begin = step.chunk.cached_len};
    const int64_t certain = step.chunk.count - step.drafts;
    Keep(rows, all.Slice(0, row, row + certain));
    row += step.chunk.count;
    const bool of_prompt = certain > 1 || step.sequence->remain_len() > 0;
    if (of_prompt) writes.push_back({&output, KnownEnd(output)});
  }
  WriteRows(writes);
}

void MtpDrafter::Accepted(Output& output, const TensorView& row) {
  Keep(output.draft_rows, parts_.runner->ToHost(row));
}

void MtpDrafter::Leave(Output& output) {
  const bool runs = output.sequence.state == SequenceState::kRunning;
  if (!runs || !OwesWholePage(output, parts_.cache->page_tokens())) return;
  const Write write{&output, KnownEnd(output)};
  WriteRows({&write, 1});
}

bool MtpDrafter::TakePages(Sequence& s, int64_t begin, int64_t end) {
  const int64_t page_tokens = parts_.cache->page_tokens();
  for (int64_t at = begin; at < end; at = (at / page_tokens + 1) * page_tokens)
    if (!parts_.cache->MakeOwn(s.pages, at)) return false;
  return true;
}

void MtpDrafter::WriteRows(std::span<const Write> writes) {
  std::vector<Write> at_once;
  int64_t rows = 0;
  for (const Write& write : writes) {
    Output& output = *write.output;
    const int64_t begin = output.draft_rows.begin;
    if (write.end <= begin || !TakePages(output.sequence, begin, write.end)) continue;
    at_once.push_back(write);
    rows += write.end - begin;
    if (rows < kRowsAtOnce) continue;
    WriteAtOnce(at_once);
    at_once.clear();
    rows = 0;
  }
  WriteAtOnce(at_once);
}

void MtpDrafter::WriteAtOnce(std::span<const Write> writes) {
  parts_.run_page_ops();
  if (writes.empty()) return;
  std::vector<SequenceChunk> chunks;
  rows_.clear();
  for (const auto& [output, end] : writes) {
    DraftRows& rows = output->draft_rows;
    const Sequence& s = output->sequence;
    const int64_t count = end - rows.begin;
    const auto tokens = std::span(s.tokens).subspan(static_cast<size_t>(rows.begin) + 1,
                                                    static_cast<size_t>(count));
    chunks.push_back(SequenceChunk::Of(tokens, rows.begin, parts_.path, s.pages));
    const std::span<const float> hidden = First(rows, count);
    rows_.insert(rows_.end(), hidden.begin(), hidden.end());
  }
  parts_.runner->AppendDraftRows(chunks, parts_.runner->FromHost(rows_));
  for (const auto& [output, end] : writes)
    DropFirst(output->draft_rows, end - output->draft_rows.begin);
}

void MtpDrafter::Propose(std::span<const DraftJob> jobs) {
  std::vector<Write> writes;
  std::vector<DraftJob> drafting;
  for (const DraftJob& job : jobs) {
    Output& output = *job.output;
    Sequence& s = output.sequence;
    // The row of the last computed token is the draft's own.
    const int64_t last = s.cached_len - 1;
    const bool drafts = job.count > 0 && EndOf(output.draft_rows) == s.cached_len &&
                        TakePages(s, output.draft_rows.begin, s.cached_len + job.count - 1);
    if (drafts) drafting.push_back(job);
    if (drafts || OwesWholePage(output, parts_.cache->page_tokens()))
      writes.push_back({&output, drafts ? last : KnownEnd(output)});
  }
  WriteRows(writes);
  std::erase_if(drafting, [](const DraftJob& job) { return job.output->draft_rows.count != 1; });
  std::ranges::stable_sort(drafting, std::ranges::greater(), &DraftJob::count);
  DraftFirst(drafting);
  for (int64_t depth = 1; depth < kMostDrafts; ++depth) {
    const auto end =
        std::ranges::find_if(drafting, [depth](const DraftJob& job) { return job.count <= depth; });
    DraftNext({drafting.begin(), end});
  }
}

void MtpDrafter::DraftFirst(std::span<const DraftJob> jobs) {
  if (jobs.empty()) return;
  std::vector<SequenceChunk> chunks;
  rows_.clear();
  for (const DraftJob& job : jobs) {
    Output& output = *job.output;
    const Sequence& s = output.sequence;
    chunks.push_back(
        SequenceChunk::Of(std::span(s.tokens).last(1), s.cached_len - 1, parts_.path, s.pages));
    const std::vector<float>& hidden = output.draft_rows.hidden;
    rows_.insert(rows_.end(), hidden.begin(), hidden.end());
    output.draft_rows = {.begin = s.cached_len};
  }
  z_ = parts_.runner->Draft(chunks, parts_.runner->FromHost(rows_));
  SampleDrafts(jobs, z_);
}

void MtpDrafter::DraftNext(std::span<const DraftJob> jobs) {
  if (jobs.empty()) return;
  std::vector<SequenceChunk> chunks;
  for (const DraftJob& job : jobs) {
    const Sequence& s = job.output->sequence;
    chunks.push_back(SequenceChunk::Of(std::span(s.drafts).last(1),
                                       s.cached_len - 1 + std::ssize(s.drafts), parts_.path,
                                       s.pages));
  }
  z_ = parts_.runner->Draft(chunks, z_.Slice(0, 0, std::ssize(jobs)), DraftInput::kDraft);
  SampleDrafts(jobs, z_);
}

// A draft is sampled with the random number of the token that it guesses: the more alike the two
// distributions are, the more often the tokens are equal.
void MtpDrafter::SampleDrafts(std::span<const DraftJob> jobs, const TensorView& z) {
  for (int64_t begin = 0; begin < std::ssize(jobs); begin += kRowsPerBlock) {
    const int64_t end = std::min(begin + kRowsPerBlock, std::ssize(jobs));
    const TensorView logits = parts_.runner->DraftLogits(z.Slice(0, begin, end));
    std::vector<SampleInput> inputs;
    for (int64_t i = begin; i < end; ++i) {
      const Output& output = *jobs[static_cast<size_t>(i)].output;
      SampleInput& input = inputs.emplace_back();
      input.logits = {logits.Row<float>(i - begin), static_cast<size_t>(logits.shape[1])};
      input.params = &output.params;
      input.history = &output.history;
      input.banned = BannedTokens(output);
      input.position = output.sequence.length() + std::ssize(output.sequence.drafts);
      input.machine = parts_.host;
    }
    const std::vector<Result<SampledToken>> sampled = SampleAll(inputs, *parts_.threads);
    // Where there is no number to sample from, any guess will do.
    for (int64_t i = begin; i < end; ++i) {
      const Result<SampledToken>& token = sampled[static_cast<size_t>(i - begin)];
      jobs[static_cast<size_t>(i)].output->sequence.drafts.push_back(token ? token->token : 0);
    }
  }
}

}  // namespace latte
