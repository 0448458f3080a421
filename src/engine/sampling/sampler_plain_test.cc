// Compares the sampler with its plain definition: sort everything, then cut.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "src/base/random.h"
#include "src/engine/sampling/sampler.h"
#include "src/engine/sampling/token_ranking.h"
#include "src/engine/sampling/token_weights.h"
#include "src/kernels/cpu/targets.h"

namespace latte::sampler_plain_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Ranked {
  float logit;
  int32_t id;
  uint64_t weight;
};

double PlainPenalty(double z, const TokenHistory::Count& seen, const SamplingParams& p) {
  z = z > 0 ? z / p.repetition_penalty : z * p.repetition_penalty;
  if (seen.generated > 0) z -= p.presence_penalty;
  return z - p.frequency_penalty * seen.generated;
}

std::vector<float> PlainAdjusted(const SampleInput& draw) {
  std::vector<float> logits(draw.logits.begin(), draw.logits.end());
  constexpr double kMost = std::numeric_limits<float>::max();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -kInf) continue;
    const auto id = static_cast<int32_t>(i);
    double z = static_cast<double>(logits[i]);
    for (const auto& [token, bias] : draw.params->logit_bias)
      if (token == id) z = std::clamp(z + static_cast<double>(bias), -kMost, kMost);
    z = static_cast<double>(static_cast<float>(z));
    if (draw.history != nullptr && draw.history->counts().contains(id))
      z = PlainPenalty(z, draw.history->counts().at(id), *draw.params);
    logits[i] = static_cast<float>(std::clamp(z, -kMost, kMost));
    if (std::find(draw.banned.begin(), draw.banned.end(), id) != draw.banned.end())
      logits[i] = -kInf;
  }
  return logits;
}

uint64_t Sum(const std::vector<Ranked>& ranked) {
  uint64_t sum = 0;
  for (const Ranked& r : ranked) sum += r.weight;
  return sum;
}

void Cut(std::vector<Ranked>& ranked, const SamplingParams& params) {
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < ranked.size())
    ranked.resize(static_cast<size_t>(params.top_k));
  if (params.top_p == 1) return;
  const double wanted = std::ceil(static_cast<double>(Sum(ranked)) * params.top_p);
  uint64_t sum = 0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    sum += ranked[i].weight;
    if (static_cast<double>(sum) < wanted) continue;
    ranked.resize(i + 1);
    return;
  }
}

// −1: none can be drawn.
int32_t PlainSample(const SampleInput& draw) {
  const Machine reference;  // no instruction set: the reference kernels
  const SamplingParams& params = *draw.params;
  const std::vector<float> logits = PlainAdjusted(draw);
  const float max = *std::max_element(logits.begin(), logits.end());
  if (max == -kInf) return -1;
  const bool greedy = params.temperature < 1e-6;
  const WeightScale scale = WeightScale::Of(max, greedy ? 1.0 : params.temperature, params.min_p);
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < logits.size(); ++i) {
    Ranked r{logits[i], static_cast<int32_t>(i), 0};
    r.weight = ComputeWeights({&logits[i], 1}, scale, reference).front();
    ranked.push_back(r);
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  if (greedy) return ranked.front().id;
  Cut(ranked, params);
  const uint64_t word = Mix64(Mix64(params.seed) ^ static_cast<uint64_t>(draw.position)) >> 11;
  __extension__ using Wide = unsigned __int128;
  const auto target = static_cast<uint64_t>((Wide{word} * Sum(ranked)) >> 53);
  uint64_t sum = 0;
  for (const Ranked& r : ranked) {
    sum += r.weight;
    if (sum > target) return r.id;
  }
  return -2;
}

// One of the ways that logits may look.
float SomeLogit(int kind, Random& random) {
  const double u = static_cast<double>(random.Below(1 << 24)) * 0x1p-24;
  switch (kind) {
    case 0:  // few values: ties
      return static_cast<float>(random.Below(65)) * 0x1p-4f - 2.0f;
    case 1:  // flat
      return static_cast<float>(4 * u - 2);
    case 2:  // a few that stand out
      return static_cast<float>(-std::log(u + 1e-7) * 2 - 3);
    case 3:  // impossible ones
      return random.Below(2) == 0 ? -kInf : static_cast<float>(10 * u - 5);
    case 4:  // of all sizes
      return static_cast<float>(std::ldexp(2 * u - 1, static_cast<int>(random.Below(270)) - 150));
    default:  // zeros of both signs
      return random.Below(2) == 0 ? -0.0f : 0.0f;
  }
}
constexpr int kKinds = 6;

template <class T, size_t N>
T OneOf(const std::array<T, N>& values, Random& random) {
  return values[random.Below(N)];
}

SamplingParams SomeParams(Random& random) {
  SamplingParams p;
  p.temperature = OneOf(std::array{0.0, 1e-6, 0.3, 1.0, 1.0, 2.5, 100.0}, random);
  p.top_k = OneOf(std::array<int64_t, 7>{0, 0, 0, 1, 7, 300, 1 << 20}, random);
  p.top_p = OneOf(std::array{1.0, 1.0, 1e-9, 0.1, 0.5, 0.95, 0.9999}, random);
  p.min_p = OneOf(std::array{0.0, 0.0, 1e-6, 0.05, 0.5, 1.0}, random);
  p.seed = random.Below(1 << 20);
  return p;
}

void AddAdjustments(SamplingParams* p, size_t vocab, Random& random) {
  p->repetition_penalty = OneOf(std::array{1.0, 1e-30, 0.5, 1.3, 100.0}, random);
  p->presence_penalty = OneOf(std::array{0.0, -2.0, 0.7, 2.0}, random);
  p->frequency_penalty = OneOf(std::array{0.0, -2.0, 0.4, 2.0}, random);
  for (uint64_t i = random.Below(4); i > 0; --i)
    p->logit_bias.emplace_back(static_cast<int32_t>(random.Below(vocab)),
                               OneOf(std::array{-100.0f, -1.5f, 3.0f, 100.0f}, random));
}

std::vector<int32_t> SomeTokens(size_t vocab, Random& random) {
  std::vector<int32_t> tokens(random.Below(6));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(vocab));
  return tokens;
}

void ExpectPlain(SampleInput draw) {
  const int32_t plain = PlainSample(draw);
  const Machine detected = *Machine::Detect();
  for (const Isa isa : {Isa::kRef, x86::kAvx2, x86::kAvx512}) {
    if (!detected.Has(isa)) continue;
    const Machine machine{.isa = isa};
    draw.machine = &machine;
    const auto drawn = Sample(draw);
    EXPECT_EQ(drawn ? drawn->token : -1, plain) << Name(isa);
  }
}

TEST(SamplerPlain, DrawsAreThoseOfTheDefinition) {
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    const size_t vocab = 1 + random.Below(i % 10 == 0 ? 3000 : 200);
    const int kind = static_cast<int>(random.Below(kKinds));
    std::vector<float> logits(vocab);
    for (float& z : logits) z = SomeLogit(kind, random);
    SamplingParams params = SomeParams(random);
    TokenHistory history;
    std::vector<int32_t> banned;
    if (random.Below(2) == 0) {
      AddAdjustments(&params, vocab, random);
      history.AddPrompt(SomeTokens(vocab, random));
      for (const int32_t token : SomeTokens(vocab, random)) history.AddGenerated(token);
      banned = SomeTokens(vocab, random);
    }
    SCOPED_TRACE(i);
    ExpectPlain({.logits = logits,
                 .params = &params,
                 .history = &history,
                 .banned = banned,
                 .position = i});
  }
}

// Rows as wide as a model's: thresholds, buckets and the last, unfinished block.
TEST(SamplerPlain, AlsoInWideRows) {
  Random random(2);
  for (int i = 0; i < 60; ++i) {
    std::vector<float> logits(20000 + random.Below(1000));
    const int kind = i % kKinds;
    for (float& z : logits) z = SomeLogit(kind, random);
    const SamplingParams params = SomeParams(random);
    SCOPED_TRACE(i);
    for (int position = 0; position < 4; ++position)
      ExpectPlain({.logits = logits, .params = &params, .position = position});
  }
}

// `logits` fall or stay with the id.
void ExpectSumsToEndAtTokens(const std::vector<float>& logits, double temperature, double share) {
  const Machine machine = *Machine::Detect();
  const ScannedRow row = ScanRow(logits, machine);
  const WeightScale scale = WeightScale::Of(row.max, temperature, 0);
  const std::vector<uint64_t> weights = ComputeWeights(logits, scale, machine);
  TokenRanking ranking(row, scale, share);
  uint64_t sum = 0;
  for (size_t i = 0; i < logits.size() && weights[i] > 0; ++i) {
    ASSERT_EQ(ranking.Reach(sum + 1).id, static_cast<int32_t>(i));
    sum += weights[i];
    ASSERT_EQ(ranking.Reach(sum).id, static_cast<int32_t>(i));
    ASSERT_EQ(ranking.Reach(sum).sum, sum);
  }
  EXPECT_EQ(ranking.total(), sum);
}

// Sums that end exactly at a token, in the first candidates and beyond them; the total by a sum of
// its own and by buckets.
TEST(SamplerPlain, TheTokenThatReachesASumCountsInIt) {
  std::vector<float> logits(1000);
  for (const float step : {0x1p-12f, 0x1p-8f, 0x1p-3f}) {
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = -step * static_cast<float>(i);
    for (const double share : {0.0, 1.0}) ExpectSumsToEndAtTokens(logits, 1, share);
  }
}

// Where the buckets do not fit how the row lies, drawing only takes longer.
TEST(SamplerPlain, AlsoWhereMostTokensShareABucket) {
  const std::vector<float> equal(600, 1.5f);
  ExpectSumsToEndAtTokens(equal, 1, 1);
  std::vector<float> rows(600);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = -0x1p-12f * static_cast<float>(i);
  for (const float last : {-25.0f, -1e30f, -3.4e38f, -kInf}) {
    rows.back() = last;
    ExpectSumsToEndAtTokens(rows, 1, 1);
  }
  rows.front() = 3e38f;
  ExpectSumsToEndAtTokens(rows, 1, 1);
  ExpectSumsToEndAtTokens(rows, 1e300, 1);
}

TEST(SamplerPlain, WeightsAreTheProbabilities) {
  const Machine machine = *Machine::Detect();
  Random random(3);
  for (int i = 0; i < 100000; ++i) {
    const auto z =
        static_cast<float>(static_cast<double>(random.Below(1 << 20)) * 0x1p-15);  // [0, 32)
    const double temperature = i % 2 == 0 ? 1.0 : 0.7;
    const float logit = 5.0f - z;
    const uint64_t weight =
        ComputeWeights({&logit, 1}, WeightScale::Of(5.0f, temperature, 0), machine).front();
    const double exact = std::exp((static_cast<double>(logit) - 5.0) / temperature) *
                         static_cast<double>(kWeightOne);
    ASSERT_NEAR(static_cast<double>(weight), exact, exact * 4e-6 + 1) << z;
  }
}

float AnyFloat() {
  const auto bits = *rc::gen::arbitrary<uint32_t>();
  const std::array<float, 8> special = {kNan, kInf, -kInf, 0.0f, -0.0f, 1e-45f, 3e38f, -3e38f};
  const auto kind = *rc::gen::inRange(0, 40);
  if (kind < 3) return special[bits % special.size()];
  if (kind < 6) return std::bit_cast<float>(bits);
  return static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-28f;
}

double AnyNumber() {
  const std::array<double, 8> numbers = {0, 1, 1e-300, 1e300, -1e300, 0.5, kNan, kInf};
  return numbers[*rc::gen::inRange<size_t>(0, numbers.size())];
}

// Anything at all: parameters that Validate accepts give a token that is possible or one of the
// errors; the others are for the caller to refuse.
RC_GTEST_PROP(SamplerProperty, AnyRowGivesATokenOrAnError, ()) {
  std::vector<float> logits(*rc::gen::inRange<size_t>(0, 300));
  for (float& z : logits) z = AnyFloat();
  SamplingParams params;
  params.temperature = AnyNumber();
  params.top_k = *rc::gen::arbitrary<int64_t>();
  params.top_p = AnyNumber();
  params.min_p = AnyNumber();
  params.repetition_penalty = std::abs(AnyNumber());
  params.presence_penalty = AnyNumber();
  params.logit_bias = {{*rc::gen::arbitrary<int32_t>(), 100.0f}};
  if (!params.Validate()) {
    const SamplingParams fallback;
    params = fallback;
    params.top_k = *rc::gen::inRange(0, 400);
  }
  TokenHistory history;
  history.AddGenerated(*rc::gen::arbitrary<int32_t>());
  const std::vector<int32_t> banned = {*rc::gen::inRange(-2, 300)};
  const Machine machine = *Machine::Detect();
  const auto drawn = Sample({.logits = logits,
                             .params = &params,
                             .history = &history,
                             .banned = banned,
                             .logprobs = *rc::gen::inRange(-1, 21),
                             .machine = &machine});
  const bool numbers = std::none_of(logits.begin(), logits.end(),
                                    [](float z) { return std::isnan(z) || z == kInf; });
  size_t possible = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    possible += logits[i] > -kInf && static_cast<int32_t>(i) != banned[0] ? 1 : 0;
  RC_ASSERT(drawn.has_value() == (numbers && possible > 0));
  if (!drawn) {
    const bool by_request =
        numbers && std::ranges::any_of(logits, [](float z) { return z > -kInf; });
    RC_ASSERT(drawn.error().code == (by_request ? Code::kInvalidArgument : Code::kCorrupt));
    RC_ASSERT(drawn.error().message.starts_with(by_request ? "min_tokens" : "numerical error"));
    return;
  }
  RC_ASSERT(drawn->token >= 0 && drawn->token < static_cast<int32_t>(logits.size()));
  RC_ASSERT(logits[static_cast<size_t>(drawn->token)] > -kInf && drawn->token != banned[0]);
}

}  // namespace
}  // namespace latte::sampler_plain_test
