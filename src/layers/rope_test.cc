#include "src/layers/rope.h"

#include <cmath>

#include <gtest/gtest.h>

#include "src/base/file.h"

namespace latte::rope_test {
namespace {

Json Goldens() {
  const std::string path = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/yarn_golden.json";
  return *Json::Parse(*ReadFile(path, 1 << 20), path);
}

TEST(Rope, YarnFrequenciesOfPublishedModels) {
  const Json goldens = Goldens();
  const Json rows = *goldens.Get("frequencies");
  ASSERT_GE(rows.size(), 4u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json row = rows.At(i);
    RopeConfig rope;
    rope.yarn = true;
    rope.theta = *row.GetDouble("rope_theta");
    rope.factor = *row.GetDouble("factor");
    rope.original_max = *row.GetInt("original_max_position_embeddings");
    rope.beta_fast = *row.GetDouble("beta_fast");
    rope.beta_slow = *row.GetDouble("beta_slow");
    const RopeTable table = RopeTable::Make(rope, *row.GetInt("dim"));
    int compared = 0;
    const Status done =
        row.Get("pairs")->ForEachMember([&](const std::string& j, const Json& expected) -> Status {
          const double value = *expected.AsDouble();
          EXPECT_NEAR(table.frequency[std::stoul(j)] / value, 1.0, 5e-9)
              << "row " << i << " f_" << j;
          ++compared;
          return {};
        });
    EXPECT_TRUE(done);
    EXPECT_GE(compared, 9);
  }
}

TEST(Rope, SoftmaxScalesOfPublishedModels) {
  const struct {
    int64_t n, r;
    bool yarn;
    double factor, mscale_all_dim, expected;
  } rows[] = {{128, 64, true, 40, 1.0, 0.1352337789}, {128, 64, true, 40, 0.707, 0.1147213868},
              {128, 64, true, 32, 1.0, 0.1308607999}, {128, 64, true, 64, 1.0, 0.1446796258},
              {128, 64, false, 1, 0.0, 0.0721687836}, {192, 64, false, 1, 0.0, 0.0625},
              {128, 64, true, 40, 0.0, 0.0721687836}, {64, 64, true, 128, 1.0, 0.1949694947},
              {64, 64, true, 128, 0.0, 0.0883883476}};
  for (const auto& row : rows) {
    MlaDims dims;
    dims.n = row.n;
    dims.r = row.r;
    RopeConfig rope;
    rope.yarn = row.yarn;
    rope.factor = row.factor;
    rope.mscale_all_dim = row.mscale_all_dim;
    EXPECT_NEAR(SoftmaxScale(dims, rope), row.expected,
                1e-10);  // the table truncates at ten digits
  }
}

TEST(Rope, AmplitudeIsOneWhenBothMscalesAreEqual) {
  RopeConfig rope;
  rope.yarn = true;
  rope.factor = 40;
  rope.original_max = 4096;
  rope.mscale = 0.707;
  rope.mscale_all_dim = 0.707;
  EXPECT_EQ(RopeTable::Make(rope, 64).amplitude, 1.0);
  rope.mscale_all_dim = 0;
  EXPECT_NEAR(RopeTable::Make(rope, 64).amplitude, 1.2608037774, 1e-9);
}

TEST(Rope, LongRopeDividesEachFrequency) {
  RopeConfig rope;
  rope.theta = 100;
  rope.pair_factors = {1, 4};
  rope.attention_factor = 1.25;
  const RopeTable table = RopeTable::Make(rope, 4);
  EXPECT_EQ(table.frequency[0], 1.0);
  EXPECT_NEAR(table.frequency[1], 0.1 / 4, 1e-17);
  EXPECT_EQ(table.amplitude, 1.25);
  MlaDims dims;
  dims.n = 64;
  dims.r = 32;
  EXPECT_NEAR(SoftmaxScale(dims, rope), 1 / std::sqrt(96.0), 1e-15);
}

TEST(Rope, FrequenciesForTheOpAreRoundedOnce) {
  RopeTable table;
  table.frequency = {1.0, 0.7};
  const Tensor rounded = table.Frequencies();
  EXPECT_EQ(rounded.bytes(), 8);
  EXPECT_EQ(rounded.Ptr<float>()[0], 1.0f);
  EXPECT_EQ(rounded.Ptr<float>()[1], 0.7f);
}

}  // namespace
}  // namespace latte::rope_test
