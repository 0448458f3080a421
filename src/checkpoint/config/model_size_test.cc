#include "src/checkpoint/config/model_size.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/expected_tensors.h"

namespace latte::model_size_test {
namespace {

ModelConfig Published(const std::string& name) {
  const auto config =
      LoadModelConfig(fmt::format("{}/tests/data/configs/{}.json", LATTE_SOURCE_DIR, name));
  if (!config) ADD_FAILURE() << config.error().message;
  return config.value_or(ModelConfig());
}

struct PublishedSize {
  const char* name;
  int64_t total;          // counted by an independent script
  int64_t active;         // counted by an independent script
  double total_billions;  // as published, with the published precision
  double active_billions;
  double digit;  // the precision of active_billions
};

// The published active size of Moonlight is rounded up: 2.915 is given as 2.92.
const PublishedSize kPublished[] = {
    {"v2_lite", 15'706'484'224, 2'661'150'208, 15.706, 2.66, 0.01},
    {"v2", 235'741'434'880, 21'375'800'320, 235.74, 21.4, 0.1},
    {"v3", 671'026'419'200, 37'552'297'472, 671.03, 37.55, 0.01},
    {"kimi_k2", 1'026'408'232'448, 32'861'500'928, 1026.4, 32.9, 0.1},
    {"glm_4_7_flash", 29'943'393'920, 3'896'766'080, 29.94, 3.90, 0.01},
    {"v3_2", 671'877'944'064, 38'403'822'336, 671.88, 38.40, 0.01},
    {"glm_5", 743'911'218'432, 41'784'728'832, 743.9, 41.8, 0.1},
    {"youtu", 1'961'560'064, 1'961'560'064, 1.96, 1.96, 0.01},
    {"axk1", 518'983'052'288, 32'779'332'608, 519, 32.8, 0.1},
    {"mistral_small_4", 118'972'826'624, 6'632'588'288, 118.97, 6.63, 0.01},
    {"minicpm3", 4'073'875'968, 4'073'875'968, 4.07, 4.07, 0.01},
    {"moonlight", 15'960'110'208, 2'914'776'192, 15.96, 2.92, 0.02},
};

TEST(ModelSize, ReproducesPublishedParameterCounts) {
  for (const PublishedSize& want : kPublished) {
    SCOPED_TRACE(want.name);
    const ModelConfig config = Published(want.name);
    const int64_t total = CountParams(config).total();
    const int64_t active = CountActiveParams(config).total();
    EXPECT_EQ(total, want.total);
    EXPECT_EQ(active, want.active);
    EXPECT_NEAR(static_cast<double>(total) / 1e9, want.total_billions, 1e-3 * want.total_billions);
    EXPECT_NEAR(static_cast<double>(active) / 1e9, want.active_billions, want.digit / 2);
  }
}

// Counts the elements of required tensors.
int64_t Elements(const std::vector<ExpectedTensor>& tensors) {
  int64_t elements = 0;
  for (const ExpectedTensor& tensor : tensors) {
    int64_t product = tensor.required ? 1 : 0;
    for (const int64_t dim : tensor.shape) product *= dim;
    elements += product;
  }
  return elements;
}

TEST(ModelSize, TotalIsTheSumOfTheTensorsOfTheCheckpoint) {
  for (const PublishedSize& model : kPublished) {
    ModelConfig config = Published(model.name);
    for (const bool variant : {false, true}) {
      config.mla.bias = variant;
      config.tied_embeddings = variant;
      EXPECT_EQ(CountParams(config).total(), Elements(ExpectedTensors(config))) << model.name;
      EXPECT_EQ(CountParams(config).mtp, Elements(ExpectedMtpTensors(config))) << model.name;
    }
  }
}

TEST(ModelSize, ComponentsOfDeepseekV3) {
  const ModelConfig config = Published("v3");
  const ParamCount count = CountParams(config);
  EXPECT_EQ(count.embedding, 129280LL * 7168);
  EXPECT_EQ(count.head, 129280LL * 7168);
  EXPECT_EQ(count.attention,
            61 * (7168LL * 1536 + 1536LL * 24576 + 7168LL * 576 + 512LL * 32768 + 16384LL * 7168));
  EXPECT_EQ(count.dense_mlp, 3 * 3 * 7168LL * 18432);
  EXPECT_EQ(count.routed_experts, 58 * 256 * 3 * 7168LL * 2048);
  EXPECT_EQ(count.shared_experts, 58 * 3 * 7168LL * 2048);
  EXPECT_EQ(count.router, 58 * (256 * 7168LL + 256));
  EXPECT_EQ(count.norms, 61 * (2 * 7168LL + 1536 + 512) + 7168);
  EXPECT_EQ(CountActiveParams(config).routed_experts, 58 * 8 * 3 * 7168LL * 2048);
  // The MTP module: 11.6 B of its own, 13.5 B with its copies of embedding and head.
  EXPECT_NEAR(static_cast<double>(count.mtp) / 1e9, 11.6, 0.05);
  EXPECT_NEAR(static_cast<double>(count.mtp + count.embedding + count.head) / 1e9, 13.5, 0.05);
  EXPECT_EQ(CountActiveParams(config).mtp, 0);
}

TEST(ModelSize, MtpLayersOfADenseModelAreDense) {
  ModelConfig config = Published("v3");
  config.moe = MoeDims();
  const ParamCount count = CountParams(config);
  EXPECT_EQ(count.mtp, count.attention / 61 + (count.norms - 7168) / 61 + count.dense_mlp / 61 +
                           2 * 7168LL * 7168 + 3 * 7168);
  EXPECT_EQ(count.routed_experts + count.shared_experts + count.router, 0);
}

TEST(ModelSize, SoftmaxRoutersHaveNoBias) {
  EXPECT_EQ(CountParams(Published("v2_lite")).router, 26 * 64 * 2048LL);
  EXPECT_EQ(CountParams(Published("moonlight")).router, 26 * (64 * 2048LL + 64));
}

TEST(ModelSize, ReproducesPublishedCacheSizes) {
  const std::pair<const char*, int64_t> kElements[] = {{"v2_lite", 15'552},
                                                       {"moonlight", 15'552},
                                                       {"v2", 34'560},
                                                       {"v3", 35'136},
                                                       {"kimi_k2", 35'136}};
  for (const auto& [name, elements] : kElements) {
    EXPECT_EQ(CacheBytesPerToken(Published(name), DType::kBF16).mla, 2 * elements) << name;
    EXPECT_EQ(CacheBytesPerToken(Published(name), DType::kF32).mla, 4 * elements) << name;
  }
  const CacheBytes v3 = CacheBytesPerToken(Published("v3"), DType::kBF16);
  EXPECT_EQ(v3.mha, 2 * 2'498'560);
  EXPECT_EQ(v3.gqa8, 2 * 2 * 8 * 128 * 61);
  EXPECT_EQ(v3.mha / v3.mla, 71);
}

// GLM-5.2: 21 of 78 layers own an indexer.
TEST(ModelSize, OnlyLayersThatOwnAnIndexerCacheItsKeys) {
  EXPECT_EQ(CacheBytesPerToken(Published("v3"), DType::kBF16).index_keys, 0);
  EXPECT_EQ(CacheBytesPerToken(Published("v3_2"), DType::kBF16).index_keys, 61 * 128 * 2);
  ModelConfig config = Published("glm_5");
  EXPECT_EQ(CacheBytesPerToken(config, DType::kBF16).index_keys, 78 * 128 * 2);
  config.indexed_layers.assign(78, false);
  for (size_t i = 0; i < 21; ++i) config.indexed_layers[3 * i] = true;
  EXPECT_EQ(CacheBytesPerToken(config, DType::kBF16).index_keys, 21 * 128 * 2);
}

TEST(ModelSize, GqaHasNoMoreHeadsThanTheModel) {
  ModelConfig config = Published("v2_lite");
  config.mla.h = 6;
  EXPECT_EQ(CacheBytesPerToken(config, DType::kBF16).gqa8, 2 * 6 * 256 * 27);
}

}  // namespace
}  // namespace latte::model_size_test
