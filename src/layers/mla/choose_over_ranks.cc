// Each rank lists its best keys with their scores; every rank then takes the best of all lists.
#include <algorithm>
#include <functional>
#include <vector>

#include "src/comm/communicator.h"
#include "src/kernels/registry.h"
#include "src/layers/mla/over_ranks.h"
#include "src/layers/ranks.h"

namespace latte {
namespace {

// Each new token as a sequence that has only this rank's keys, up to the token.
struct OwnKeys {
  OwnKeys(const KeyOwner& owner, std::span<const SequenceChunk> sequences, int64_t page_tokens) {
    for (const SequenceChunk& s : sequences) {
      std::vector<int32_t>& own = pages.emplace_back();
      for (int64_t i = 0; i < std::ssize(s.pages); ++i)
        if (owner.OwnsSplit(i * page_tokens / kSplitKeys))
          own.push_back(s.pages[static_cast<size_t>(i)]);
      for (int64_t i = 0; i < s.count; ++i) {
        const int64_t keys = owner.KeysOf(s.cached_len + i + 1);
        tokens.push_back({.query_start = s.query_start + i, .count = 1, .cached_len = keys - 1});
        table.push_back(pages.size() - 1);
      }
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto count = static_cast<size_t>(CeilDiv(tokens[i].total_len(), page_tokens));
      tokens[i].pages = std::span(pages[table[i]]).first(count);
    }
  }
  std::vector<std::vector<int32_t>> pages;
  std::vector<size_t> table;
  std::vector<SequenceChunk> tokens;
};

struct Candidate {
  float score;
  int32_t position;
};

// Keeps the `most` best, the lower position of equal scores, and sorts them by position.
void KeepBest(std::vector<Candidate>& all, int64_t most) {
  if (std::ssize(all) > most) {
    std::nth_element(all.begin(), all.begin() + most, all.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.score != b.score ? a.score > b.score : a.position < b.position;
                     });
    all.resize(static_cast<size_t>(most));
  }
  std::ranges::sort(all, {}, &Candidate::position);
}

}  // namespace

void ChooseOverRanks(IndexTopKOp::Params p, StepContext& step) {
  Workspace& workspace = *step.workspace;
  const Workspace::Scope scope(workspace);
  const KeyOwner owner = OwnerOf(step);
  const TensorView chosen = p.positions;
  const int64_t t = chosen.shape[0];
  const int64_t k = chosen.shape[1];
  const OwnKeys own(owner, p.sequences, p.pages.shape[1]);
  // Lists of all ranks, each [positions, scores].
  const TensorView all = workspace.Take(DType::kI32, {owner.count, 2, t, k});
  const TensorView mine = all.Slice(0, owner.index, owner.index + 1).Reshape({2, t, k});
  p.sequences = own.tokens;
  p.positions = TensorView(mine.data, DType::kI32, {t, k});
  p.scores = TensorView(mine.data + t * k * SizeOf(DType::kI32), DType::kF32, {t, k});
  Run<IndexTopKOp>(p, step.exec);
  const auto bytes_of = [](const TensorView& x) {
    return std::as_writable_bytes(std::span(x.Ptr<int32_t>(), static_cast<size_t>(x.elements())));
  };
  step.cache_ranks->AllGatherEqual(bytes_of(mine), bytes_of(all));
  step.exec.threads->ParallelFor(t, [&](int64_t row) {
    std::vector<Candidate> best;
    for (int64_t rank = 0; rank < owner.count; ++rank) {
      const int32_t* const list = all.Ptr<int32_t>() + (2 * rank * t + row) * k;
      const auto* const scores = reinterpret_cast<const float*>(list + t * k);
      for (int64_t i = 0; i < k && list[i] >= 0; ++i) {
        const int64_t split = KeyOwner{rank, owner.count}.Split(list[i] / kSplitKeys);
        best.push_back(
            {scores[i], static_cast<int32_t>(split * kSplitKeys + list[i] % kSplitKeys)});
      }
    }
    KeepBest(best, k);
    int32_t* const to = chosen.Row<int32_t>(row);
    std::fill(std::ranges::transform(best, to, &Candidate::position).out, to + k, -1);
  });
}

TensorView OwnPositions(const TensorView& lists, StepContext& step) {
  const KeyOwner owner = OwnerOf(step);
  const int64_t k = lists.shape[1];
  const TensorView out = step.workspace->Take(DType::kI32, {lists.shape[0], k});
  step.exec.threads->ParallelFor(lists.shape[0], [&](int64_t row) {
    const std::span<const int32_t> list(lists.Row<int32_t>(row), static_cast<size_t>(k));
    int32_t* const to = out.Row<int32_t>(row);
    const auto end = std::ranges::copy_if(list, to, [&](int32_t position) {
                       return position >= 0 && owner.OwnsSplit(position / kSplitKeys);
                     }).out;
    std::fill(end, to + k, -1);
  });
  return out;
}

}  // namespace latte
