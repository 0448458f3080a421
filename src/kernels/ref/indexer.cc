#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "src/kernels/ref/ref.h"

namespace latte::ref {
namespace {

// The score of one key [W] for new token t.
float Score(const IndexTopKOp::Params& p, int64_t t, const float* key) {
  const IndexTopKOp::Shape s = IndexTopKOp::ShapeOf(p);
  double sum = 0;
  for (int64_t h = 0; h < s.h; ++h) {
    const float* const q = p.q.Ptr<float>() + t * p.q.stride[0] + h * p.q.stride[1];
    double dot = 0;
    for (int64_t i = 0; i < s.w; ++i)
      dot += static_cast<double>(q[i]) * static_cast<double>(key[i]);
    sum += static_cast<double>(p.weights.Row<float>(t)[h]) * (dot > 0 ? dot : 0);
  }
  const auto score = static_cast<float>(sum);
  return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
}

// Lists the best of the first keys.shape[0] keys of token t.
void ListBest(const IndexTopKOp::Params& p, int64_t t, const TensorView& keys) {
  std::vector<float> scores(static_cast<size_t>(keys.shape[0]));
  for (int64_t j = 0; j < keys.shape[0]; ++j)
    scores[static_cast<size_t>(j)] = Score(p, t, keys.Row<float>(j));
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&](int32_t j) { return scores[static_cast<size_t>(j)]; });
  order.resize(std::min(order.size(), static_cast<size_t>(p.positions.shape[1])));
  std::ranges::sort(order);
  if (!p.scores.empty()) {
    float* const row = p.scores.Row<float>(t);
    const auto end = std::ranges::transform(order, row, [&](int32_t j) {
                       return scores[static_cast<size_t>(j)];
                     }).out;
    std::fill(end, row + p.scores.shape[1], 0.0f);
  }
  int32_t* const list = p.positions.Row<int32_t>(t);
  std::fill(std::ranges::copy(order, list).out, list + p.positions.shape[1], -1);
}

}  // namespace

void IndexTopK(const IndexTopKOp::Params& p, const Exec& exec) {
  const int64_t w = p.q.shape[2];
  for (const SequenceChunk& s : p.sequences) {
    if (s.count == 0) continue;
    const Tensor keys(DType::kF32, {s.total_len(), w});
    if (s.total_len() > 0) GatherPages({p.pages, s.pages, 0, keys, w, p.row_format}, exec);
    exec.threads->ParallelFor(s.count, [&](int64_t i) {
      ListBest(p, IndexTopKOp::FirstRow(p, s) + i, keys.view().Slice(0, 0, s.cached_len + i + 1));
    });
  }
}

}  // namespace latte::ref
