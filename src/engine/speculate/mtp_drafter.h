// Drafts by the multi-token-prediction layers (src/models/mtp.h): draft d by layer (d − 1) mod m of m.
//
// They are further layers of the cache. The row of position t in layer k needs the hidden state of token
// t, tokens t+1 … t+k, and the rows before it of the layers before k. So rows may be written late: the
// hidden states of tokens that lack the row of a layer are kept with their output (DraftRows). Rows of a
// prompt are written chunk by chunk. Rows of generated tokens are written when the next draft is made, or
// when their page is full. A row of layer k at the end of the text takes a draft for its token, and is
// written again when the token is known.
//
// The last m rows of a page depend on tokens after the page. A prompt that begins with the page and
// continues otherwise finds rows that were made for other tokens: it may cost a draft.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "src/base/thread_pool.h"
#include "src/engine/speculate/drafter.h"
#include "src/engine/step/runner.h"

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
    int64_t layers = 1;                  // m, that draft
  };
  explicit MtpDrafter(Parts parts) : parts_(std::move(parts)) {}

  void Propose(std::span<const DraftJob> jobs) override;
  void Computed(const StepPlan& plan, const TensorView& h) override;
  void Accepted(Output& output, const TensorView& row) override;
  void Leave(Output& output) override;

 private:
  // Rows [begin, end) of an output.
  struct Rows {
    Output* output = nullptr;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t count() const { return end - begin; }
  };
  static Rows Owed(Output& output, int64_t end) { return {&output, output.draft_rows.begin, end}; }
  // The end of the owed rows whose tokens are known in every layer.
  int64_t KnownEnd(const Output& output) const;
  // Writes owed rows; those without a page stay owed.
  void WriteRows(std::span<const Rows> writes);
  void WriteAtOnce(std::span<const Rows> writes);
  // Makes the pages of rows [begin, end) the sequence's own. False: there is no page left.
  bool TakePages(Sequence& s, int64_t begin, int64_t end);
  TensorView HiddenOf(std::span<const Rows> rows);
  // Row t with token t + ahead. Valid until the next call.
  std::vector<SequenceChunk> Chunks(std::span<const Rows> rows, int64_t ahead);
  // Jobs are sorted by falling count; all get one more draft, their draft `depth`, counted from 0.
  void Draft(std::span<const DraftJob> jobs, int64_t depth);
  void SampleDrafts(std::span<const DraftJob> jobs, const TensorView& z, int64_t layer);

  Parts parts_;
  TensorView z_;                 // of the last drafts
  std::vector<float> hidden_;    // of a call of the runner
  std::vector<int32_t> tokens_;  // the same
};

}  // namespace latte
