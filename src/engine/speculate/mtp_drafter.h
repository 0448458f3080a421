// Drafts by the multi-token-prediction layer (src/models/mtp.h).
//
// The layer is one more layer of the cache. Its row of position t needs the hidden state of token t
// and token t+1, and no other row. So rows may be written late: the hidden states whose rows are not
// written yet are kept with their output (DraftRows). Rows of a prompt are written chunk by chunk. Rows
// of generated tokens are written when the next draft is made, or when their page is full.
//
// The last row of a page depends on the token after the page. A prompt that begins with the page and
// continues otherwise finds a row that was made for another token: it may cost a draft.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "src/base/thread_pool.h"
#include "src/engine/run/runner.h"
#include "src/engine/speculate/drafter.h"

namespace latte {

class MtpDrafter final : public Drafter {
 public:
  // The parts of the engine that it works with. All must outlive it.
  struct Parts {
    Runner* runner = nullptr;
    CacheManager* cache = nullptr;
    ThreadPool* threads = nullptr;
    const Machine* host = nullptr;       // samples
    std::function<void()> run_page_ops;  // of `cache`
    MlaPath path = MlaPath::kAbsorbed;   // of drafts
  };
  explicit MtpDrafter(Parts parts) : parts_(std::move(parts)) {}

  void Propose(std::span<const DraftJob> jobs) override;
  void Computed(const StepPlan& plan, const TensorView& h) override;
  void Accepted(Output& output, const TensorView& row) override;
  void Leave(Output& output) override;

 private:
  // The rows that an output owes, up to that of token `end`.
  struct Write {
    Output* output = nullptr;
    int64_t end = 0;
  };
  void WriteRows(std::span<const Write> writes);
  void WriteAtOnce(std::span<const Write> writes);
  // Makes the pages of rows [begin, end) the sequence's own. False: there is no page left.
  bool TakePages(Sequence& s, int64_t begin, int64_t end);
  // Jobs are sorted by falling count; all get one more draft.
  void DraftFirst(std::span<const DraftJob> jobs);
  void DraftNext(std::span<const DraftJob> jobs);
  void SampleDrafts(std::span<const DraftJob> jobs, const TensorView& z);

  Parts parts_;
  TensorView z_;             // of the last drafts
  std::vector<float> rows_;  // of a call of the runner
};

}  // namespace latte
