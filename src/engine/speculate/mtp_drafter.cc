#include "src/engine/speculate/mtp_drafter.h"

#include <algorithm>

#include "src/engine/output/output_streams.h"
#include "src/engine/sampling/sampler.h"

namespace latte {
namespace {

// Logits are computed in blocks of rows, as the logits of a step are.
constexpr int64_t kDraftRowsPerBlock = 64;

// Rows that are written in one call, roughly: as many as a step has tokens.
constexpr int64_t kRowsAtOnce = 512;

int64_t EndOf(const DraftRows& rows) { return rows.begin + rows.count; }

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

DraftRun RunOf(int64_t depth, int64_t layer) {
  return {layer, depth == 0 ? DraftInput::kDecoder : DraftInput::kDraft};
}

void DropFirst(DraftRows& rows, int64_t count) {
  const auto dropped = static_cast<std::ptrdiff_t>(First(rows, count).size());
  rows.hidden.erase(rows.hidden.begin(), rows.hidden.begin() + dropped);
  rows.begin += count;
  rows.count -= count;
}

void DropLast(DraftRows& rows, int64_t count) {
  rows.hidden.resize(First(rows, rows.count - count).size());
  rows.count -= count;
}

}  // namespace

int64_t MtpDrafter::KnownEnd(const Output& output) const {
  return std::min(EndOf(output.draft_rows), output.sequence.length() - parts_.layers);
}

void MtpDrafter::Computed(const StepPlan& plan, const TensorView& h) {
  const TensorView all = parts_.runner->ToHost(h);
  std::vector<Rows> writes;
  int64_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    Output& output = *step.sequence->output;
    DraftRows& rows = output.draft_rows;
    const int64_t known = step.chunk.cached_len - rows.begin;
    if (known >= 0 && known < rows.count)
      DropLast(rows, rows.count - known);  // it computes tokens again
    else if (EndOf(rows) != step.chunk.cached_len)
      rows = {.begin = step.chunk.cached_len};  // it has just been admitted, perhaps again
    const int64_t certain = step.chunk.count - step.drafts;
    Keep(rows, all.Slice(0, row, row + certain));
    row += step.chunk.count;
    const bool of_prompt = certain > 1 || step.sequence->remain_len() > 0;
    if (of_prompt) writes.push_back(Owed(output, KnownEnd(output)));
  }
  WriteRows(writes);
}

void MtpDrafter::Accepted(Output& output, const TensorView& row) {
  Keep(output.draft_rows, parts_.runner->ToHost(row));
}

void MtpDrafter::Leave(Output& output) {
  const bool runs = output.sequence.state == SequenceState::kRunning;
  if (!runs || !OwesWholePage(output, parts_.cache->page_tokens())) return;
  const Rows write = Owed(output, KnownEnd(output));
  WriteRows({&write, 1});
}

bool MtpDrafter::TakePages(Sequence& s, int64_t begin, int64_t end) {
  const int64_t page_tokens = parts_.cache->page_tokens();
  for (int64_t at = begin; at < end; at = (at / page_tokens + 1) * page_tokens)
    if (!parts_.cache->MakeOwn(s.pages, at)) return false;
  return true;
}

void MtpDrafter::WriteRows(std::span<const Rows> writes) {
  std::vector<Rows> at_once;
  int64_t rows = 0;
  for (const Rows& write : writes) {
    if (write.count() <= 0 || !TakePages(write.output->sequence, write.begin, write.end)) continue;
    at_once.push_back(write);
    rows += write.count();
    if (rows < kRowsAtOnce) continue;
    WriteAtOnce(at_once);
    at_once.clear();
    rows = 0;
  }
  WriteAtOnce(at_once);
}

void MtpDrafter::WriteAtOnce(std::span<const Rows> writes) {
  parts_.run_page_ops();
  if (writes.empty()) return;
  TensorView h = HiddenOf(writes);
  const int64_t last = parts_.layers - 1;
  for (int64_t layer = 0; layer < last; ++layer)
    h = parts_.runner->Draft(Chunks(writes, layer + 1), h, RunOf(layer, layer));
  parts_.runner->AppendDraftRows(Chunks(writes, last + 1), h, RunOf(last, last));
  for (const Rows& write : writes) DropFirst(write.output->draft_rows, write.count());
}

// The hidden states of rows that are owed, from the first on.
TensorView MtpDrafter::HiddenOf(std::span<const Rows> rows) {
  hidden_.clear();
  for (const Rows& one : rows) {
    const std::span<const float> hidden = First(one.output->draft_rows, one.count());
    hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
  }
  return parts_.runner->FromHost(hidden_);
}

std::vector<SequenceChunk> MtpDrafter::Chunks(std::span<const Rows> rows, int64_t ahead) {
  int64_t count = 0;
  for (const Rows& one : rows) count += one.count();
  tokens_.resize(static_cast<size_t>(count));
  std::span<int32_t> rest(tokens_);
  std::vector<SequenceChunk> out;
  for (const Rows& one : rows) {
    const Sequence& s = one.output->sequence;
    const std::span<int32_t> tokens = rest.first(static_cast<size_t>(one.count()));
    rest = rest.subspan(tokens.size());
    for (int64_t t = one.begin; t < one.end; ++t)
      tokens[static_cast<size_t>(t - one.begin)] = TokenAt(s, t + ahead);
    out.push_back(SequenceChunk::Of(tokens, one.begin, parts_.path, s.pages));
  }
  return out;
}

void MtpDrafter::Propose(std::span<const DraftJob> jobs) {
  std::vector<Rows> writes;
  std::vector<DraftJob> drafting;
  for (const DraftJob& job : jobs) {
    Output& output = *job.output;
    Sequence& s = output.sequence;
    const bool drafts = job.count > 0 && EndOf(output.draft_rows) == s.cached_len &&
                        TakePages(s, output.draft_rows.begin, s.cached_len + job.count - 1);
    if (drafts) drafting.push_back(job);
    // The row of the last computed token is the draft's own.
    const int64_t end = std::min(KnownEnd(output), drafts ? s.cached_len - 1 : s.cached_len);
    if (drafts || OwesWholePage(output, parts_.cache->page_tokens()))
      writes.push_back(Owed(output, end));
  }
  WriteRows(writes);
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
    DropFirst(rows, KnownEnd(*job.output) - rows.begin);
  }
}

// Layers draft in turn. In the first turn they run over the rows that are owed, where their last tokens
// are drafts; after that over a row of the draft alone, at the next position.
void MtpDrafter::Draft(std::span<const DraftJob> jobs, int64_t depth) {
  if (jobs.empty()) return;
  const int64_t layer = depth % parts_.layers;
  const int64_t turn = depth / parts_.layers;
  std::vector<Rows> rows;
  std::vector<int64_t> last;
  int64_t count = 0;
  for (const DraftJob& job : jobs) {
    const int64_t end = job.output->sequence.cached_len + turn;
    rows.push_back({job.output, turn == 0 ? job.output->draft_rows.begin : end - 1, end});
    count += rows.back().count();
    last.push_back(count - 1);
  }
  const TensorView h = depth == 0 ? HiddenOf(rows) : z_.Slice(0, 0, count);
  z_ = parts_.runner->Draft(Chunks(rows, depth + 1 - turn), h, RunOf(depth, layer));
  const TensorView drafts = count == std::ssize(jobs) ? z_ : parts_.runner->Pick(z_, last);
  if (layer + 1 == parts_.layers) z_ = drafts;
  SampleDrafts(jobs, drafts, layer);
}

// A draft is sampled with the random number of the token that it guesses: the more alike the two
// distributions are, the more often the tokens are equal.
void MtpDrafter::SampleDrafts(std::span<const DraftJob> jobs, const TensorView& z, int64_t layer) {
  for (int64_t begin = 0; begin < std::ssize(jobs); begin += kDraftRowsPerBlock) {
    const int64_t end = std::min(begin + kDraftRowsPerBlock, std::ssize(jobs));
    const TensorView logits = parts_.runner->DraftLogits(z.Slice(0, begin, end), layer);
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
