#include "src/engine/step/largest_step.h"

#include <algorithm>

#include "src/base/math.h"

namespace latte {

void FillSmallest(Step& step, MlaPath path) {
  const int32_t zero = 0;
  const int64_t row = 0;
  step.Clear();
  step.AddChunk(SequenceChunk::Of({&zero, 1}, 0, path, {&zero, 1}));
  step.AddLogits({&row, 1});
}

void FillLargest(Step& step, MlaPath path, int64_t longest) {
  step.Clear();
  const StepCapacity& capacity = step.capacity();
  // A sequence has two chunks where its tokens are on two paths.
  const int64_t sequences = std::max<int64_t>(capacity.chunks / 2, 1);
  const int64_t pages =
      std::min(CeilDiv(longest, capacity.page_tokens), capacity.pages / sequences);
  const int64_t length = std::min(longest, pages * capacity.page_tokens);
  const std::vector<int32_t> tokens(static_cast<size_t>(std::min(length, capacity.tokens)));
  const std::vector<int32_t> all_pages(static_cast<size_t>(pages));
  for (int64_t i = 0; i < sequences && step.token_count() < capacity.tokens; ++i) {
    const int64_t count = std::min(length, capacity.tokens - step.token_count());
    step.AddChunk(SequenceChunk::Of(std::span(tokens).first(static_cast<size_t>(count)),
                                    length - count, path, all_pages));
  }
  // The same row again and again: rows that are not neighbours are gathered.
  const int64_t rows = std::min({kLogitBlockRows, capacity.logit_rows, step.token_count()});
  step.AddLogits(std::vector<int64_t>(static_cast<size_t>(rows)));
}

}  // namespace latte
