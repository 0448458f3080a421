#include "src/jobs/simulate/step_cost.h"

#include <fstream>

#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "tests/support/scratch_dir.h"

namespace latte::step_cost_test {
namespace {

MoeDims Moe() {
  MoeDims moe;
  moe.experts = 8;
  moe.chosen = 2;
  return moe;
}
StepModel Dense() { return {Moe()}; }

TEST(StepCost, TermsOfAStep) {
  const StepShape step = {{{1, 9, MlaPath::kAbsorbed},
                           {3, 5, MlaPath::kAbsorbed},
                           {200, 10, MlaPath::kLatent},
                           {2, 4, MlaPath::kDecompressed}},
                          3};
  const StepTerms terms = TermsOf(step, Dense());
  EXPECT_EQ(step.tokens(), 206);
  EXPECT_EQ(terms[0], 1);
  EXPECT_EQ(terms[1], 4);
  EXPECT_EQ(terms[2], 3);
  EXPECT_EQ(terms[3] + terms[4] + terms[5], 206);
  EXPECT_EQ(terms[3], 16);
  EXPECT_EQ(terms[4], 112);
  EXPECT_NEAR(terms[6], 8, 1e-9);
  EXPECT_EQ(terms[7], 10);
  EXPECT_EQ(terms[8], 6 + 7 + 8);
  EXPECT_EQ(terms[9], 8);
  EXPECT_EQ(terms[10], 210);
  EXPECT_EQ(terms[11], 200 * 10 + 200 * 201 / 2 + 5 + 6);
  EXPECT_EQ(terms[12], 3);
  EXPECT_EQ(terms[13] + terms[14], 0);
  EXPECT_EQ(terms[15] + terms[16], 0);
}

// Tokens from position 8 on choose their keys: one decode of the first kind does not, the other
// does.
TEST(StepCost, TermsOfTokensThatChooseTheirKeys) {
  const StepModel model = {Moe(), 8};
  const StepShape step = {{{1, 7, MlaPath::kAbsorbed},
                           {1, 9, MlaPath::kSparse},
                           {6, 4, MlaPath::kLatent},
                           {3, 20, MlaPath::kSparse}},
                          4};
  const StepTerms terms = TermsOf(step, model);
  EXPECT_EQ(terms[1], 4);
  EXPECT_EQ(terms[2], 2);
  EXPECT_EQ(terms[7], 8);  // of the first
  EXPECT_EQ(terms[8] + terms[9], 0);
  EXPECT_EQ(terms[10], 8);  // four tokens of the third attend to all keys
  EXPECT_EQ(terms[11], 5 + 6 + 7 + 8);
  EXPECT_EQ(terms[15], 1 + 2 + 3);
  EXPECT_EQ(terms[16], 10 + (9 + 10) + (21 + 22 + 23));
  EXPECT_EQ(TermsOf(step, Dense())[15], 0);
}

TEST(StepCost, AStepAfterIdlenessHasTermsOfItsOwn) {
  StepShape step = {{{30, 9, MlaPath::kAbsorbed}, {3, 5, MlaPath::kLatent}}, 1};
  const StepTerms busy = TermsOf(step, Dense());
  step.woken = true;
  StepTerms woken = TermsOf(step, Dense());
  EXPECT_EQ(woken[13], 1);
  EXPECT_EQ(woken[14], 33);
  woken[13] = woken[14] = 0;
  EXPECT_EQ(woken, busy);
}

TEST(StepCost, ExpectedExperts) {
  EXPECT_EQ(ExpectedExperts(0, Moe()), 0);
  EXPECT_EQ(ExpectedExperts(1, Moe()), 2);
  EXPECT_EQ(ExpectedExperts(2, Moe()), 3.5);  // 8·(1 − (3/4)²)
  EXPECT_EQ(ExpectedExperts(5, MoeDims()), 0);
}

std::vector<MeasuredStep> Measured(const StepCost& truth) {
  std::vector<MeasuredStep> steps;
  for (const int64_t count : {1, 2, 8, 40, 100, 300, 500})
    for (const int64_t cached : {0, 7, 100, 900})
      for (const MlaPath path : {MlaPath::kAbsorbed, MlaPath::kLatent})
        for (const int64_t many : {1, 3, 9, 30}) {
          StepShape shape;
          shape.pieces.assign(static_cast<size_t>(many), {count, cached, path});
          shape.drawn = cached == 7 ? 0 : many;
          shape.woken = cached == 0 && many == 1;
          steps.push_back({shape, truth.Of(shape, Dense())});
        }
  return steps;
}

TEST(StepCost, AFitFindsThePricesThatMadeTheSteps) {
  StepCost truth;
  for (size_t i = 0; i < truth.seconds.size(); ++i)
    truth.seconds[i] = 1e-6 * static_cast<double>(1 + (i * 7) % 5);
  const std::vector<MeasuredStep> steps = Measured(truth);
  const StepCost fitted = FitStepCost(steps, Dense());
  for (const MeasuredStep& step : steps)
    EXPECT_NEAR(fitted.Of(step.shape, Dense()) / step.seconds, 1, 0.01);
}

TEST(StepCost, NoPriceIsNegative) {
  StepCost truth;
  truth.seconds[0] = 1e-3;
  truth.seconds[3] = -2e-5;  // negative: the first tokens make steps faster
  truth.seconds[5] = 1e-6;
  const StepCost fitted = FitStepCost(Measured(truth), Dense());
  for (const double price : fitted.seconds) EXPECT_GE(price, 0);
  EXPECT_GT(fitted.seconds[0], 0);
}

class CostFile : public testing::Test {
 protected:
  Result<StepCost> Load(const JsonOut& record) {
    const std::string path = dir_.path() + "/cost.json";
    std::ofstream(path) << Dump(record);
    return LoadStepCost(path, "a model");
  }
  testing_support::ScratchDir dir_;
};

TEST_F(CostFile, KeepsThePrices) {
  StepCost cost;
  for (size_t i = 0; i < cost.seconds.size(); ++i) cost.seconds[i] = 1e-6 * static_cast<double>(i);
  const auto loaded = Load(ToJson(cost, "a model"));
  ASSERT_TRUE(loaded) << ToString(loaded.error());
  for (size_t i = 0; i < cost.seconds.size(); ++i)
    EXPECT_DOUBLE_EQ(loaded->seconds[i], cost.seconds[i]);
}

// Files of earlier versions have no costs of tokens that choose their keys.
TEST_F(CostFile, WithoutTheNewestCostsTheyAreZero) {
  StepCost cost;
  for (double& seconds : cost.seconds) seconds = 1e-6;
  JsonOut record = ToJson(cost, "a model");
  for (const char* name : {"sparse_tokens", "scored_pairs"}) record["microseconds"].erase(name);
  const auto loaded = Load(record);
  ASSERT_TRUE(loaded) << ToString(loaded.error());
  EXPECT_EQ(loaded->seconds[15] + loaded->seconds[16], 0);
  EXPECT_EQ(loaded->seconds[14], 1e-6);
  record["microseconds"].erase("woken_tokens");
  EXPECT_FALSE(Load(record));
}

TEST_F(CostFile, RefusesOthersAndBrokenOnes) {
  const auto other = Load(ToJson({}, "another"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kInvalidArgument);
  EXPECT_NE(other.error().message.find("latte bench steps"), std::string::npos);
  JsonOut record = ToJson({}, "a model");
  record["microseconds"]["drawn"] = -1;
  EXPECT_NE(Load(record).error().message.find("drawn"), std::string::npos);
  record["microseconds"].erase("drawn");
  EXPECT_FALSE(Load(record));
}

}  // namespace
}  // namespace latte::step_cost_test
