#include "src/engine/step/runner.h"

#include <gtest/gtest.h>

#include "src/layers/mla/mla.h"
#include "src/models/registry.h"
#include "tests/support/step/single_steps.h"

namespace latte::runner_test {
namespace {

// Select runs once for each op and shape of a step, however many layers ask. The next step selects
// anew.
TEST(Runner, AStepSelectsOncePerOpAndShape) {
  auto model = LoadModel(std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v3_noaux");
  ASSERT_TRUE(model) << ToString(model.error());
  const Machine machine = *Machine::Detect();
  ThreadPool threads(1);
  const ModelConfig& config = (*model)->config();
  LatentCache cache = *LatentCache::Create(
      {MlaCacheStreams(config.mla, MlaPath::kAbsorbed, CacheDType::Plain(DType::kF32)),
       config.layers, 64},
      1);
  Workspace workspace;
  testing_support::SingleSteps steps({.model = model->get(),
                                      .cache = &cache,
                                      .workspace = &workspace,
                                      .exec = {.threads = &threads, .machine = &machine}},
                                     {DType::kF32, 4096});
  const std::vector<int32_t> tokens = {5, 6, 7}, pages = {0};

  const auto selected = [&](size_t count) {
    const auto chunk =
        SequenceChunk::Of(std::span(tokens).first(count), 0, MlaPath::kAbsorbed, pages);
    steps.Forward({&chunk, 1});
    return steps.runner().selections().selected();
  };
  const int64_t of_three = selected(3);
  const int64_t of_two = selected(2);
  EXPECT_EQ(selected(3), of_three);
  EXPECT_EQ(selected(2), of_two);
  // About as many as one layer of each kind needs, fewer than all layers need.
  EXPECT_GT(of_three, 15);
  EXPECT_LT(of_three, 45);
}

}  // namespace
}  // namespace latte::runner_test
