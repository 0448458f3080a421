#include "src/engine/run/runner.h"

#include <gtest/gtest.h>

#include "src/layers/mla/mla.h"
#include "src/models/registry.h"

namespace latte {
namespace {

// Select runs once for each op and shape of a step: a model with more layers of the same kind asks for
// the same shapes, and the next step selects anew.
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
  OpTimes times;
  Runner runner(**model, cache, workspace, Exec{&threads, &machine}, {DType::kF32, 4096});
  const std::vector<int32_t> tokens = {5, 6, 7}, pages = {0};

  const auto first = SequenceChunk::Of(tokens, 0, MlaPath::kAbsorbed, pages);
  runner.Forward({&first, 1});
  const int64_t selected = runner.selections().selected();
  EXPECT_GT(selected, 0);
  // The same step again: as many selections. None of them is kept, because the next step may differ.
  runner.Forward({&first, 1});
  EXPECT_EQ(runner.selections().selected(), selected);
  EXPECT_LT(selected, 25 * config.layers);
}

}  // namespace
}  // namespace latte
