// Small cases computed by hand, for every kernel: routing and the sum of experts.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/support/run_kernels.h"

namespace latte::hand_moe_test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

TensorView View(Floats& values, std::initializer_list<int64_t> dims) {
  return {values.data(), DType::kF32, dims};
}

// The logit of a probability of the sigmoid.
float Logit(double p) { return static_cast<float>(std::log(p / (1 - p))); }

struct Choice {
  Ints experts;
  Floats weights;
};

Choice Route(const Kernel<RouteOp>& kernel, Floats logits, RouteOp::Params p, Floats bias = {}) {
  Choice out{Ints(static_cast<size_t>(p.chosen), -1), Floats(static_cast<size_t>(p.chosen))};
  p.logits = View(logits, {1, static_cast<int64_t>(logits.size())});
  if (!bias.empty()) p.bias = View(bias, {static_cast<int64_t>(bias.size())});
  p.experts = out.experts;
  p.weights = out.weights;
  RunKernel(kernel, p);
  return out;
}

TEST(Hand, RouteBySoftmaxScalesButDoesNotNormalize) {
  const auto ln = [](double x) { return static_cast<float>(std::log(x)); };
  RouteOp::Params p;
  p.chosen = 2;
  p.scale = 2.0f;
  ForEachKernel<RouteOp>([&](const Kernel<RouteOp>& kernel) {
    const Choice c = Route(kernel, {ln(1), ln(4), ln(2), ln(3)}, p);
    EXPECT_EQ(c.experts, (Ints{1, 3}));
    EXPECT_FLOAT_EQ(c.weights[0], 0.8f);
    EXPECT_FLOAT_EQ(c.weights[1], 0.6f);
  });
}

TEST(Hand, RouteTakesTheLowerIndexOnATie) {
  RouteOp::Params p;
  p.chosen = 3;
  ForEachKernel<RouteOp>([&](const Kernel<RouteOp>& kernel) {
    EXPECT_EQ(Route(kernel, {1, 2, 1, 2, 1}, p).experts, (Ints{1, 3, 0}));
    EXPECT_EQ(Route(kernel, {5, 5, 5, 5, 5}, p).experts, (Ints{0, 1, 2}));
  });
}

TEST(Hand, RouteBiasChoosesButDoesNotWeigh) {
  RouteOp::Params p;
  p.chosen = 2;
  p.score = RouterScore::kSigmoid;
  p.normalize = true;
  p.scale = 3.0f;
  ForEachKernel<RouteOp>([&](const Kernel<RouteOp>& kernel) {
    const Choice c =
        Route(kernel, {Logit(0.6), Logit(0.5), Logit(0.2)}, p, /*bias=*/{0.0f, 0.0f, 0.7f});
    EXPECT_EQ(c.experts, (Ints{2, 0}));
    EXPECT_FLOAT_EQ(c.weights[0], 0.75f);  // 3 · 0.2 / (0.2 + 0.6)
    EXPECT_FLOAT_EQ(c.weights[1], 2.25f);
  });
}

// Groups {0.9, 0.1}, {0.6, 0.5}, {0.2, 0.3}: the first wins by its maximum, the second by the sum
// of two.
TEST(Hand, RouteKeepsGroupsByMaxOrByTheSumOfTwo) {
  const Floats logits = {Logit(0.9), Logit(0.1), Logit(0.6), Logit(0.5), Logit(0.2), Logit(0.3)};
  RouteOp::Params p;
  p.chosen = 2;
  p.groups = 3;
  p.groups_kept = 1;
  p.score = RouterScore::kSigmoid;
  ForEachKernel<RouteOp>([&](const Kernel<RouteOp>& kernel) {
    p.group_score = GroupScore::kMax;
    EXPECT_EQ(Route(kernel, logits, p).experts, (Ints{0, 1}));
    p.group_score = GroupScore::kTop2Sum;
    EXPECT_EQ(Route(kernel, logits, p).experts, (Ints{2, 3}));
    // If groups are equal, the lower one wins. A maximum that occurs twice counts twice.
    EXPECT_EQ(Route(kernel, {1, 1, 1, 1, 1, 1}, p).experts, (Ints{0, 1}));
    EXPECT_EQ(Route(kernel, {1, -9, 0.9f, 0.9f, 0, 0}, p).experts, (Ints{2, 3}));
  });
}

// Random logits: the choice of the reference, and its weights within rounding of
// exp and of sums over 96 experts.
TEST(RouteConformance, ExpertsAreThoseOfTheReference) {
  constexpr int64_t kTokens = 5, kExperts = 96, kChosen = 6;
  // Of two sums of 96 terms with a few roundings more.
  constexpr float kBound = 2 * (kExperts + 10) * 0x1p-24f;
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> uniform(-3.0f, 3.0f);
  Floats logits(kTokens * kExperts), bias(kExperts);
  for (float& v : logits) v = uniform(rng);
  for (float& v : bias) v = 0.1f * uniform(rng);
  const auto route = [&](const Kernel<RouteOp>& kernel, RouteOp::Params p) {
    Choice out{Ints(kTokens * kChosen, -1), Floats(kTokens * kChosen)};
    p.logits = View(logits, {kTokens, kExperts});
    p.bias = View(bias, {kExperts});
    p.chosen = kChosen;
    p.experts = out.experts;
    p.weights = out.weights;
    RunKernel(kernel, p);
    return out;
  };
  ForEachKernel<RouteOp>([&](const Kernel<RouteOp>& kernel) {
    for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSigmoid})
      for (const GroupScore of_group : {GroupScore::kMax, GroupScore::kTop2Sum})
        for (const int64_t groups : {1, 8, 48}) {
          const RouteOp::Params p = {.groups = groups,
                                     .groups_kept = std::min<int64_t>(groups, 4),
                                     .score = score,
                                     .group_score = of_group,
                                     .normalize = groups == 8,
                                     .scale = 2.5f};
          const Choice want = route(Kernels<RouteOp>().front(), p), found = route(kernel, p);
          EXPECT_EQ(found.experts, want.experts) << groups << " groups";
          for (size_t i = 0; i < want.weights.size(); ++i)
            EXPECT_NEAR(found.weights[i], want.weights[i], kBound * want.weights[i]) << i;
        }
  });
}

TEST(Hand, CombineSumsInTheOrderOfK) {
  // In f32 (1e8 − 1e8) + 1 is 1 and (1 + 1e8) − 1e8 is 0.
  Floats x = {1.0f, 1e8f, -1e8f};
  const Floats ones = {1, 1, 1, 1, 1, 1};
  const Ints rows = {1, 2, 0, 0, 1, 2};
  ForEachKernel<CombineOp>([&](const Kernel<CombineOp>& kernel) {
    Floats y = {10, 20};
    RunKernel(kernel, {View(x, {3, 1}), rows, ones, 3, View(y, {2, 1})});
    EXPECT_EQ(y, (Floats{11, 20}));
    y = {NAN, NAN};
    RunKernel(kernel, {View(x, {3, 1}), rows, ones, 3, View(y, {2, 1}), /*add=*/false});
    EXPECT_EQ(y, (Floats{1, 0}));
  });
}

TEST(Hand, EveryExpertTakesItsRows) {
  Floats x = {9, 9, 1, 2, 3, 4, 5, 6, 9, 9};                                         // [5, 2]
  Floats sums = {1, 1}, differences = {1, -1}, first_only = {2, 0}, zeros = {0, 0};  // [1, 2] each
  const std::vector<ExpertWeights> experts = {
      {.w = View(sums, {1, 2})},
      {.w = View(zeros, {1, 2})},
      {},  // another call computes it
      {.w = View(differences, {1, 2})},
  };
  const Ints first = {1, 3, 3, 3, 4};  // rows 0 and 4 belong to experts of other ranks
  Floats shared_y = {-7};
  GemmProblem shared;
  shared.x = BatchOfOne(View(x, {5, 2}).Slice(0, 1, 2));
  shared.w = BatchOfOne(View(first_only, {1, 2}));
  shared.y = BatchOfOne(View(shared_y, {1, 1}));
  ForEachKernel<ExpertGemmOp>([&](const Kernel<ExpertGemmOp>& kernel) {
    Floats y = {-7, -7, -7, -7, -7};
    ExpertGemmOp::Params p = {
        .experts = experts, .first = first, .x = View(x, {5, 2}), .y = View(y, {5, 1})};
    RunKernel(kernel, p);
    EXPECT_EQ(y, (Floats{-7, 3, 7, -1, -7}));
    EXPECT_EQ(shared_y, Floats{-7});
    p.shared = {&shared, 1};
    RunKernel(kernel, p);
    EXPECT_EQ(shared_y, Floats{2});
    shared_y = {-7};
  });
}

TEST(Hand, GroupByExpertKeepsTheOrderOfTokens) {
  const Ints experts = {2, 0, 2, 3, 0, 2};  // of three tokens
  ForEachKernel<GroupByExpertOp>([&](const Kernel<GroupByExpertOp>& kernel) {
    Ints first(6, -1), token(6, -1), place(6, -1);
    RunKernel(kernel, {experts, 2, first, token, place});
    EXPECT_EQ(first, (Ints{0, 2, 2, 5, 6, 6}));
    EXPECT_EQ(token, (Ints{0, 2, 0, 1, 2, 1}));
    EXPECT_EQ(place, (Ints{2, 0, 3, 5, 1, 4}));
  });
}

}  // namespace
}  // namespace latte::hand_moe_test
