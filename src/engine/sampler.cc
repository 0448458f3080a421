#include "src/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "src/base/random.h"

namespace latte {
namespace {

// Uniform in [0, 1).
double Uniform(uint64_t seed, int64_t position) {
  const uint64_t word = Mix64(Mix64(seed) ^ static_cast<uint64_t>(position));
  return static_cast<double>(word >> 11) * 0x1p-53;
}

struct Candidate {
  int32_t id;
  double probability;  // unnormalised
};

Status CheckFinite(std::span<const float> logits) {
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity())
      return Internal(fmt::format(
          "numerical error: the logit of token {} is {}; see whether the weights are finite "
          "with --check-weights",
          i, logits[i]));
    any = any || std::isfinite(logits[i]);
  }
  if (!any)
    return Internal(
        "numerical error: every logit is -inf; see whether the weights are finite with "
        "--check-weights");
  return {};
}

// Candidates that pass min_p, likeliest first.
std::vector<Candidate> Candidates(std::span<const float> logits, const SamplingParams& params) {
  const double max = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<Candidate> out;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = std::exp((static_cast<double>(logits[i]) - max) / params.temperature);
    if (p > 0 && p >= params.min_p) out.push_back({static_cast<int32_t>(i), p});
  }
  std::sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  });
  return out;
}

double Total(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& c) { return sum + c.probability; });
}

void KeepTopP(std::vector<Candidate>& candidates, double top_p) {
  const double wanted = Total(candidates) * top_p;
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += candidates[i].probability;
    if (sum >= wanted) {
      candidates.resize(i + 1);
      return;
    }
  }
}

}  // namespace

Status SamplingParams::Validate() const {
  if (!(temperature >= 0 && temperature <= 100))
    return InvalidArgument(
        fmt::format("temperature: expected a number in [0, 100], found {}", temperature));
  if (top_k < 0)
    return InvalidArgument(fmt::format("top_k: expected 0 (all) or more, found {}", top_k));
  if (!(top_p > 0 && top_p <= 1))
    return InvalidArgument(fmt::format("top_p: expected a number in (0, 1], found {}", top_p));
  if (!(min_p >= 0 && min_p <= 1))
    return InvalidArgument(fmt::format("min_p: expected a number in [0, 1], found {}", min_p));
  return {};
}

std::string_view Name(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

Result<int32_t> Sample(std::span<const float> logits, const SamplingParams& params,
                       int64_t position) {
  LATTE_RETURN_IF_ERROR(CheckFinite(logits));
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  // Below this the other tokens' probabilities underflow anyway, and dividing by it would overflow.
  if (params.temperature < 1e-6) return static_cast<int32_t>(likeliest - logits.begin());

  std::vector<Candidate> candidates = Candidates(logits, params);
  if (params.top_k > 0 && params.top_k < static_cast<int64_t>(candidates.size()))
    candidates.resize(static_cast<size_t>(params.top_k));
  if (params.top_p < 1) KeepTopP(candidates, params.top_p);

  double left = Uniform(params.seed, position) * Total(candidates);
  for (const Candidate& c : candidates) {
    left -= c.probability;
    if (left < 0) return c.id;
  }
  return candidates.back().id;  // rounding left a crumb
}

double LogSumExp(std::span<const float> logits) {
  const double max = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  if (!std::isfinite(max)) return max;
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z) - max);
  return max + std::log(sum);
}

}  // namespace latte
