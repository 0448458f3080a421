// Drafts by the multi-token-prediction layers (src/models/mtp.h): draft d by layer (d − 1) mod m of
// m.
//
// They are further layers of the cache. The row of position t in layer k needs the hidden state of
// token t, tokens t+1 … t+k, and the earlier rows of the layers before k. So rows may be written
// late: the hidden states of tokens without the row of a layer are kept (DraftRows, kept_rows.h).
// If there is no room to keep one, its row is never written, which may cost drafts. Rows of a
// prompt are written chunk by chunk. Rows of generated tokens are written with the next draft, or
// when their page is full. A row of layer k at the end of the text takes a draft for its token, and
// is written again when the token is known.
//
// The last m rows of a page depend on tokens after the page. A prompt that begins with the page and
// continues differently finds rows for other tokens, which may cost a draft.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/base/thread_pool.h"
#include "src/engine/settings.h"
#include "src/engine/speculate/drafter.h"
#include "src/engine/speculate/kept_rows.h"
#include "src/engine/step/runner.h"

namespace latte {

class MtpDrafter final : public Drafter {
 public:
  // The parts of the engine that it works with. All must outlive it.
  struct Parts {
    Runner* runner = nullptr;
    CacheManager* cache = nullptr;
    ThreadPool* threads = nullptr;
    const Machine* host = nullptr;            // samples
    std::function<void(Step&)> add_page_ops;  // of `cache`, to a step without tokens
    MlaPath path = MlaPath::kAbsorbed;        // of drafts
    int64_t layers = 1;                       // m, that draft
  };
  explicit MtpDrafter(Parts parts)
      : parts_(std::move(parts)),
        kept_(parts_.runner->options().kept_rows),
        step_(parts_.runner->capacity()) {}

  void Propose(std::span<const DraftJob> jobs) override;
  void Keep(const StepPlan& plan, Step& step) override;
  bool WritesAfter(const StepPlan& plan) const override;
  void Computed(const StepPlan& plan, bool may_run) override;
  void Forked(Output& output) override { kept_.Share(output.draft_rows.slots); }
  void Accepted(Output& output, int64_t row) override;
  void Leave(Output& output) override;
  void EndStep() override;

 private:
  // Rows [begin, end) of a sequence.
  struct Rows {
    const Sequence* sequence = nullptr;
    DraftRows* kept = nullptr;
    const std::vector<int32_t>* pages = nullptr;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t count() const { return end - begin; }
  };
  // Rows of an output that has ended, whose pages this keeps until they are written.
  struct LeftRows {
    const Sequence* sequence = nullptr;
    DraftRows rows;
    std::vector<int32_t> pages;
  };
  static Rows Owed(Output& output, int64_t end) {
    return {&output.sequence, &output.draft_rows, &output.sequence.pages, output.draft_rows.begin,
            end};
  }
  // The end of the owed rows whose tokens are known in every layer.
  int64_t KnownEnd(const Output& output) const;
  // Writes the rows that `outputs` owe up to an end; those without a page stay owed.
  struct Owing {
    Output* output = nullptr;
    int64_t end = 0;
  };
  void WriteOwed(std::span<const Owing> owing);
  void WriteRows(std::span<const Rows> writes);
  void WriteAtOnce(std::span<const Rows> writes);
  void WriteLeft();
  // Makes the pages of rows [begin, end) the sequence's own. False: there is no page left.
  bool TakePages(Sequence& s, int64_t begin, int64_t end);
  // Moves rows of the step to an output, as its next ones.
  void KeepRows(DraftRows& rows, std::span<int32_t> more);
  void DropFirst(DraftRows& rows, int64_t count);
  void DropLast(DraftRows& rows, int64_t count);
  // Adds row t with token t + ahead of each sequence to the step.
  void AddRows(std::span<const Rows> rows, int64_t ahead);
  void AddKeptSources(std::span<const Rows> rows);
  // Jobs are sorted by falling count; all get one more draft, their draft `depth`, counted from 0.
  void Draft(std::span<const DraftJob> jobs, int64_t depth);
  void SampleBlock(std::span<const DraftJob> jobs);

  Parts parts_;
  KeptRows kept_;
  Step step_;  // a draft
  std::vector<int32_t>
      of_step_;  // the kept row of each row of the engine's step; −1: none, or taken
  std::vector<LeftRows> left_;
  std::vector<int64_t> last_;    // rows of the last drafts, one of each job
  std::vector<int32_t> tokens_;  // of a chunk
};

}  // namespace latte
