#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "src/kernels/ref/ref.h"

namespace latte::ref {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::vector<float> Scores(std::span<const float> logits, RouterScore kind) {
  std::vector<float> out(logits.size());
  if (kind == RouterScore::kSigmoid) {
    std::transform(logits.begin(), logits.end(), out.begin(),
                   [](float z) { return 1.0f / (1.0f + std::exp(-z)); });
    return out;
  }
  const float max = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (size_t e = 0; e < logits.size(); ++e) sum += out[e] = std::exp(logits[e] - max);
  for (float& s : out) s /= sum;
  return out;
}

// Indices of the `count` largest values, best first; the lower index wins a tie.
std::vector<int32_t> Best(std::span<const float> values, int64_t count) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    const float va = values[static_cast<size_t>(a)];
    const float vb = values[static_cast<size_t>(b)];
    return va != vb ? va > vb : a < b;
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

float ScoreOfGroup(std::span<const float> group, GroupScore kind) {
  const float best = *std::max_element(group.begin(), group.end());
  if (kind == GroupScore::kMax) return best;
  // The sum of the best two, each expert counted once.
  const auto at = std::max_element(group.begin(), group.end()) - group.begin();
  float second = kMinusInfinity;
  for (size_t i = 0; i < group.size(); ++i)
    if (static_cast<int64_t>(i) != at) second = std::max(second, group[i]);
  return best + second;
}

// Excludes the experts of all but the best groups.
void KeepBestGroups(std::span<float> choice, const RouteOp::Params& p) {
  const size_t width = choice.size() / static_cast<size_t>(p.groups);
  std::vector<float> group_scores;
  for (int64_t g = 0; g < p.groups; ++g)
    group_scores.push_back(
        ScoreOfGroup(choice.subspan(static_cast<size_t>(g) * width, width), p.group_score));
  std::vector<bool> kept(group_scores.size(), false);
  for (const int32_t g : Best(group_scores, p.groups_kept)) kept[static_cast<size_t>(g)] = true;
  for (size_t e = 0; e < choice.size(); ++e)
    if (!kept[e / width]) choice[e] = kMinusInfinity;
}

void RouteToken(const RouteOp::Params& p, int64_t t) {
  const auto experts = static_cast<size_t>(p.logits.shape[1]);
  const std::vector<float> scores = Scores({p.logits.Row<float>(t), experts}, p.score);
  std::vector<float> choice = scores;
  if (!p.bias.empty())
    for (size_t e = 0; e < experts; ++e) choice[e] += p.bias.Ptr<float>()[e];
  if (p.groups > 1) KeepBestGroups(choice, p);

  const std::vector<int32_t> chosen = Best(choice, p.chosen);
  float sum = 0;
  for (const int32_t e : chosen) sum += scores[static_cast<size_t>(e)];
  const float factor = p.normalize ? p.scale / (sum + 1e-20f) : p.scale;
  for (size_t k = 0; k < chosen.size(); ++k) {
    const size_t at = static_cast<size_t>(t * p.chosen) + k;
    p.experts[at] = chosen[k];
    p.weights[at] = scores[static_cast<size_t>(chosen[k])] * factor;
  }
}

}  // namespace

void Route(const RouteOp::Params& p, const Exec& exec) {
  exec.threads->ParallelFor(p.logits.shape[0], [&](int64_t t) { RouteToken(p, t); });
}

void GroupByExpert(const GroupByExpertOp::Params& p, const Exec&) {
  std::fill(p.first.begin(), p.first.end(), 0);
  for (const int32_t e : p.experts) ++p.first[static_cast<size_t>(e) + 1];
  std::partial_sum(p.first.begin(), p.first.end(), p.first.begin());
  std::vector<int32_t> next(p.first.begin(), p.first.end() - 1);
  for (size_t pair = 0; pair < p.experts.size(); ++pair) {
    const int32_t row = next[static_cast<size_t>(p.experts[pair])]++;
    p.row[pair] = row;
    p.token[static_cast<size_t>(row)] = static_cast<int32_t>(pair / static_cast<size_t>(p.chosen));
  }
}

void Combine(const CombineOp::Params& p, const Exec& exec) {
  const int64_t width = p.y.shape[1];
  exec.threads->ParallelFor(p.y.shape[0], [&](int64_t t) {
    float* y = p.y.Row<float>(t);
    for (int64_t d = 0; d < width; ++d) {
      float sum = 0;
      for (int64_t k = 0; k < p.chosen; ++k) {
        const auto at = static_cast<size_t>(t * p.chosen + k);
        sum += p.weights[at] * p.x.Row<float>(p.rows[at])[d];
      }
      y[d] = p.add ? y[d] + sum : sum;
    }
  });
}

}  // namespace latte::ref
