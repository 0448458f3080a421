#include "src/engine/sampling/sampler.h"

#include <algorithm>
#include <bit>
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

Status CheckPossible(const ScannedRow& row, bool adjusted, bool masked = false) {
  if (row.max > -kInf) return {};
  if (masked)
    return InvalidArgument(
        "grammar: expected a token that may follow, found that the model, min_tokens or logit_bias "
        "rules out all that match; give it another grammar");
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

// Whole words of a mask are often 0 or all ones.
void Forbid(std::span<const uint32_t> allowed, std::span<float> logits) {
  for (size_t begin = 0; begin < logits.size(); begin += 32) {
    uint32_t forbidden = ~allowed[begin / 32];
    const auto block = logits.subspan(begin, std::min<size_t>(32, logits.size() - begin));
    if (forbidden == ~uint32_t{0})
      std::ranges::fill(block, -kInf);
    else
      for (; forbidden != 0; forbidden &= forbidden - 1) {
        const auto bit = static_cast<size_t>(std::countr_zero(forbidden));
        if (bit < block.size()) block[bit] = -kInf;
      }
  }
}

// The logits after bias, penalties, bans and mask; empty if there are none. Ids outside the
// vocabulary are ignored.
std::vector<float> Adjusted(const SampleInput& input) {
  const SamplingParams& params = *input.params;
  const bool penalties = input.history != nullptr && HasPenalties(params);
  if (!penalties && params.logit_bias.empty() && input.banned.empty() && input.allowed.empty())
    return {};
  std::vector<float> logits(input.logits.begin(), input.logits.end());
  const auto known = [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < logits.size(); };
  for (const auto& [id, bias] : params.logit_bias)
    if (known(id)) {
      float& z = logits[static_cast<size_t>(id)];
      Replace(z, static_cast<double>(z) + static_cast<double>(bias));
    }
  if (penalties)
    for (const auto& [id, count] : input.history->counts())
      if (known(id)) {
        float& z = logits[static_cast<size_t>(id)];
        Replace(z, Penalised(static_cast<double>(z), count, params));
      }
  for (const int32_t id : input.banned)
    if (known(id)) logits[static_cast<size_t>(id)] = -kInf;
  if (!input.allowed.empty()) Forbid(input.allowed, logits);
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
int32_t SampleByWeight(uint64_t total, const SampleInput& input, const F& reach) {
  const SamplingParams& params = *input.params;
  if (params.top_p < 1) total = reach(WantedByTopP(total, params.top_p)).sum;
  return reach(Uniform(params.seed, input.position, total) + 1).id;
}

int32_t SampleToken(const ScannedRow& row, const SampleInput& input) {
  const SamplingParams& params = *input.params;
  const WeightScale scale = WeightScale::Of(row.max, params.temperature, params.min_p);
  const auto top_k = static_cast<uint64_t>(params.top_k);
  if (top_k == 0 || top_k >= row.logits.size()) {
    constexpr double kAnywhere = 0.5;
    TokenRanking ranking(row, scale, params.top_p < 1 ? params.top_p : kAnywhere);
    return SampleByWeight(ranking.total(), input,
                          [&](uint64_t wanted) { return ranking.Reach(wanted); });
  }
  std::vector<Candidate> candidates = LikeliestTokens(row, top_k);
  FillWeights(candidates, scale, *row.machine);
  uint64_t total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  return SampleByWeight(total, input,
                        [&](uint64_t wanted) { return ReachAmong(candidates, wanted); });
}

TokenLogprobs LogprobsOf(const ScannedRow& row, int32_t token, int top) {
  const double sum = LogSumExp(row.logits);
  const auto logprob_of = [&](int32_t id) {
    const auto logit = static_cast<double>(row.logits[static_cast<size_t>(id)]);
    return TokenLogprob{id, static_cast<float>(logit - sum)};
  };
  TokenLogprobs out{logprob_of(token), {}};
  if (top <= 0) return out;
  std::vector<Candidate> likeliest = LikeliestTokens(row, static_cast<size_t>(top));
  std::sort(likeliest.begin(), likeliest.end(), Likelier);
  for (const Candidate& c : likeliest) out.top.push_back(logprob_of(c.id));
  return out;
}

}  // namespace

bool HasPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

void TokenHistory::AddPrompt(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) counts_[token].in_prompt = true;
}

void TokenHistory::AddGenerated(int32_t token) { ++counts_[token].generated; }

Result<SampledToken> Sample(const SampleInput& input) {
  const ScannedRow given = ScanRow(input.logits, *input.machine);
  LATTE_RETURN_IF_ERROR(CheckNumbers(given));
  LATTE_RETURN_IF_ERROR(CheckPossible(given, /*adjusted=*/false));
  const std::vector<float> adjusted = Adjusted(input);
  const bool as_given = adjusted.empty();
  const ScannedRow row = as_given ? given : ScanRow(adjusted, *input.machine);
  LATTE_RETURN_IF_ERROR(CheckPossible(row, /*adjusted=*/true, !input.allowed.empty()));
  const bool greedy = input.params->temperature < kGreedyBelow;
  SampledToken out{greedy ? Likeliest(row) : SampleToken(row, input), {}};
  if (input.logprobs >= 0) out.logprobs = LogprobsOf(given, out.token, input.logprobs);
  return out;
}

std::vector<Result<SampledToken>> SampleAll(std::span<const SampleInput> inputs,
                                            ThreadPool& threads) {
  std::vector<Result<SampledToken>> out(inputs.size());
  threads.ParallelFor(static_cast<int64_t>(inputs.size()), [&](int64_t i) {
    const auto index = static_cast<size_t>(i);
    out[index] = Sample(inputs[index]);
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
