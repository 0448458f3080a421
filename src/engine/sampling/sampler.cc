#include "src/engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "src/base/random.h"
#include "src/engine/sampling/token_ranking.h"
#include "src/engine/sampling/token_weights.h"

namespace latte {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
// Below this the other tokens' probabilities underflow anyway, and dividing by it would overflow.
constexpr double kGreedyBelow = 1e-6;

// A number of [0, total), the same for the same seed and position.
uint64_t Uniform(uint64_t seed, int64_t position, uint64_t total) {
  const uint64_t word = Mix64(Mix64(seed) ^ static_cast<uint64_t>(position)) >> 11;
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{word} * total) >> 53);
}

// Kernels are exact over finite weights, so logits that are no numbers are the checkpoint's fault.
Status CheckNumbers(const ScannedRow& row) {
  if (!row.nan && row.max < kInf) return {};
  const auto bad = std::find_if(row.logits.begin(), row.logits.end(),
                                [](float z) { return std::isnan(z) || z == kInf; });
  return Corrupt(fmt::format(
      "numerical error: expected finite logits, found {} for token {}: the checkpoint holds NaN, "
      "infinity or numbers that overflow; find them with --check-weights, or take another copy",
      *bad, bad - row.logits.begin()));
}

Status CheckPossible(const ScannedRow& row, bool adjusted) {
  if (row.max > -kInf) return {};
  if (adjusted)
    return InvalidArgument(
        "min_tokens: expected a token that may be drawn, found that all those whose logit is "
        "finite "
        "would end the answer; allow it to end, or name fewer stop tokens");
  return Corrupt(
      "numerical error: expected a token that can be drawn, found that every logit is -inf: the "
      "checkpoint holds infinity or numbers that overflow; find them with --check-weights, or take "
      "another copy");
}

bool HasPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

double Penalised(double logit, const TokenHistory::Count& count, const SamplingParams& params) {
  const double repetition = params.repetition_penalty;
  logit = logit > 0 ? logit / repetition : logit * repetition;
  if (count.generated == 0) return logit;
  return logit - params.presence_penalty - params.frequency_penalty * count.generated;
}

// Finite numbers stay finite; −inf stays −inf.
void Replace(float& logit, double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (logit > -kInf) logit = static_cast<float>(std::clamp(value, -kMost, kMost));
}

// The logits after bias, penalties and bans; empty if there are none. Ids that the vocabulary does
// not have are passed over.
std::vector<float> Adjusted(const Draw& draw) {
  const SamplingParams& params = *draw.params;
  const bool penalties = draw.history != nullptr && HasPenalties(params);
  if (!penalties && params.logit_bias.empty() && draw.banned.empty()) return {};
  std::vector<float> logits(draw.logits.begin(), draw.logits.end());
  const auto known = [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < logits.size(); };
  for (const auto& [id, bias] : params.logit_bias)
    if (known(id)) {
      float& z = logits[static_cast<size_t>(id)];
      Replace(z, static_cast<double>(z) + static_cast<double>(bias));
    }
  if (penalties)
    for (const auto& [id, count] : draw.history->counts())
      if (known(id)) {
        float& z = logits[static_cast<size_t>(id)];
        Replace(z, Penalised(static_cast<double>(z), count, params));
      }
  for (const int32_t id : draw.banned)
    if (known(id)) logits[static_cast<size_t>(id)] = -kInf;
  return logits;
}

// The first of the largest.
int32_t Likeliest(const ScannedRow& row) {
  const auto block = std::find(row.block_max.begin(), row.block_max.end(), row.max);
  const auto first = (block - row.block_max.begin()) * static_cast<int64_t>(kLogitBlock);
  return static_cast<int32_t>(std::find(row.logits.begin() + first, row.logits.end(), row.max) -
                              row.logits.begin());
}

// The weight that the tokens kept by top_p have to reach.
uint64_t WantedByTopP(uint64_t total, double top_p) {
  const double wanted = std::ceil(static_cast<double>(total) * top_p);
  return std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, total);
}

// reach(wanted): of ReachAmong.
template <class F>
int32_t DrawByWeight(uint64_t total, const Draw& draw, const F& reach) {
  const SamplingParams& params = *draw.params;
  if (params.top_p < 1) total = reach(WantedByTopP(total, params.top_p)).sum;
  return reach(Uniform(params.seed, draw.position, total) + 1).id;
}

int32_t DrawToken(const ScannedRow& row, const Draw& draw) {
  const SamplingParams& params = *draw.params;
  const WeightScale scale = WeightScale::Of(row.max, params.temperature, params.min_p);
  const auto top_k = static_cast<uint64_t>(params.top_k);
  if (top_k == 0 || top_k >= row.logits.size()) {
    constexpr double kAnywhere = 0.5;
    TokenRanking ranking(row, scale, params.top_p < 1 ? params.top_p : kAnywhere);
    return DrawByWeight(ranking.total(), draw,
                        [&](uint64_t wanted) { return ranking.Reach(wanted); });
  }
  std::vector<Candidate> candidates = LikeliestTokens(row, top_k);
  FillWeights(candidates, scale, *row.machine);
  uint64_t total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  return DrawByWeight(total, draw, [&](uint64_t wanted) { return ReachAmong(candidates, wanted); });
}

TokenLogprobs LogprobsOf(const ScannedRow& row, int32_t token, int top) {
  const double sum = LogSumExp(row.logits);
  const auto told = [&](int32_t id) {
    const auto logit = static_cast<double>(row.logits[static_cast<size_t>(id)]);
    return TokenLogprob{id, static_cast<float>(logit - sum)};
  };
  TokenLogprobs out{told(token), {}};
  if (top <= 0) return out;
  std::vector<Candidate> likeliest = LikeliestTokens(row, static_cast<size_t>(top));
  std::sort(likeliest.begin(), likeliest.end(), Likelier);
  for (const Candidate& c : likeliest) out.top.push_back(told(c.id));
  return out;
}

}  // namespace

void TokenHistory::AddPrompt(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) counts_[token].in_prompt = true;
}

void TokenHistory::AddGenerated(int32_t token) { ++counts_[token].generated; }

Result<Drawn> Sample(const Draw& draw) {
  const ScannedRow given = ScanRow(draw.logits, *draw.machine);
  LATTE_RETURN_IF_ERROR(CheckNumbers(given));
  LATTE_RETURN_IF_ERROR(CheckPossible(given, /*adjusted=*/false));
  const std::vector<float> adjusted = Adjusted(draw);
  const bool as_given = adjusted.empty();
  const ScannedRow row = as_given ? given : ScanRow(adjusted, *draw.machine);
  LATTE_RETURN_IF_ERROR(CheckPossible(row, /*adjusted=*/true));
  const bool greedy = draw.params->temperature < kGreedyBelow;
  Drawn out{greedy ? Likeliest(row) : DrawToken(row, draw), {}};
  if (draw.logprobs >= 0) out.logprobs = LogprobsOf(given, out.token, draw.logprobs);
  return out;
}

std::vector<Result<Drawn>> SampleAll(std::span<const Draw> draws, ThreadPool& threads) {
  std::vector<Result<Drawn>> out(draws.size());
  threads.ParallelFor(static_cast<int64_t>(draws.size()), [&](int64_t i) {
    const auto index = static_cast<size_t>(i);
    out[index] = Sample(draws[index]);
  });
  return out;
}

Result<TokenLogprobs> Logprobs(std::span<const float> logits, int32_t token, int top,
                               const Machine& machine) {
  const ScannedRow row = ScanRow(logits, machine);
  LATTE_RETURN_IF_ERROR(CheckNumbers(row));
  LATTE_RETURN_IF_ERROR(CheckPossible(row, /*adjusted=*/false));
  return LogprobsOf(row, token, top);
}

double LogSumExp(std::span<const float> logits) {
  const double max = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  if (!std::isfinite(max)) return max;
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z) - max);
  return max + std::log(sum);
}

}  // namespace latte
