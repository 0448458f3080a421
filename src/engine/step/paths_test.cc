// Steps in which sequences take different attention paths, and paths that change as a sequence
// grows.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/attention_mode.h"
#include "src/engine/schedule/scheduler.h"
#include "src/engine/step/runner.h"
#include "src/models/registry.h"
#include "tests/support/parameter_name.h"
#include "tests/support/step/single_steps.h"

namespace latte::paths_test {
namespace {

using testing_support::SingleSteps;

constexpr int64_t kPageTokens = 16;
constexpr int64_t kPages = 64;
constexpr int64_t kAnswer = 12;

// An answer: its tokens, and the logits that they were chosen from.
struct Bytes {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  bool operator==(const Bytes&) const = default;
};

using PromptPath = std::function<MlaPath(int64_t new_tokens, int64_t cached_tokens)>;

MlaPath AlwaysAbsorbed(int64_t, int64_t) { return MlaPath::kAbsorbed; }

// How paths are chosen, and how many keys a token on the sparse path attends to.
struct Paths {
  PromptPath prompt = AlwaysAbsorbed;
  int64_t sparse_from = kNeverSparse;
  int64_t topk = 4;
};

class PathsTest : public testing::TestWithParam<const char*> {
 protected:
  // The model with another top-k.
  std::unique_ptr<Model> Load(int64_t topk) const {
    const std::string dir = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + GetParam();
    ModelConfig config = *LoadModelConfig(dir);
    config.indexer.topk = topk;
    auto loaded = LoadModel(dir, config, *Checkpoint::Open(dir));
    EXPECT_TRUE(loaded) << ToString(loaded.error());
    return std::move(*loaded);
  }

  // The likeliest answers to prompts of these lengths, computed together.
  std::map<int64_t, Bytes> Generate(const std::vector<int64_t>& lengths, const Paths& paths,
                                    int64_t max_batch_tokens, CacheDType cache_dtype) {
    const std::unique_ptr<Model> model = Load(paths.topk);
    const ModelConfig& config = model->config();
    LatentCache cache = *LatentCache::Create(
        CacheSpecFor(config, AttentionMode::kAuto, cache_dtype, kPageTokens), kPages);
    CacheManager pages({.pages = kPages, .page_tokens = kPageTokens, .prefix_cache = false});
    Workspace workspace;
    SingleSteps runner({.model = model.get(),
                        .cache = &cache,
                        .workspace = &workspace,
                        .exec = {.threads = &threads_, .machine = &machine_}},
                       {DType::kBF16, 4096, true, paths.sparse_from});
    SchedulerOptions options;
    options.max_batch_tokens = max_batch_tokens;
    options.max_sequences = 8;
    options.min_chunk_tokens = 2;
    options.prompt_path = paths.prompt;
    options.chunk_path = [&](MlaPath usual, int64_t cached_len, int64_t) {
      return cached_len >= paths.sparse_from ? MlaPath::kSparse : usual;
    };
    Scheduler scheduler(options, pages);
    std::vector<Sequence> sequences(lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      sequences[i].spec.id = static_cast<SequenceId>(i);
      sequences[i].spec.max_len = lengths[i] + kAnswer;
      sequences[i].tokens = Prompt(lengths[i], config.vocab);
      scheduler.Add(sequences[i]);
    }
    std::map<int64_t, Bytes> out;
    most_paths_ = 0;
    while (!scheduler.idle()) {
      const StepPlan plan = scheduler.Plan();
      EXPECT_TRUE(plan.ops.empty());
      Compute(plan, runner);
      scheduler.Advance(plan);
      Sample(plan, runner, scheduler, out);
    }
    return out;
  }

  size_t most_paths_ = 0;  // in one step of the last Generate

 private:
  static std::vector<int32_t> Prompt(int64_t length, int64_t vocab) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < length; ++i)
      out.push_back(static_cast<int32_t>(Mix64(static_cast<uint64_t>(length * 1000 + i)) %
                                         static_cast<uint64_t>(vocab)));
    return out;
  }

  void Compute(const StepPlan& plan, SingleSteps& runner) {
    std::vector<SequenceChunk> chunks;
    std::set<MlaPath> paths;
    for (const SequenceStep& step : plan.steps) {
      chunks.push_back(step.chunk);
      paths.insert(step.chunk.path);
    }
    runner.Forward(chunks);
    most_paths_ = std::max(most_paths_, paths.size());
  }

  static void Sample(const StepPlan& plan, SingleSteps& runner, Scheduler& scheduler,
                     std::map<int64_t, Bytes>& out) {
    int64_t row = 0;
    for (const SequenceStep& step : plan.steps) {
      row += step.chunk.count;
      if (!step.samples) continue;
      const std::vector<int64_t> rows = {row - 1};
      const TensorView logits = runner.Logits(rows);
      const std::span<const float> all(logits.Row<float>(0), static_cast<size_t>(logits.shape[1]));
      Sequence& s = *step.sequence;
      Bytes& bytes = out[s.prompt_len];
      bytes.logits.insert(bytes.logits.end(), all.begin(), all.end());
      bytes.tokens.push_back(static_cast<int32_t>(std::ranges::max_element(all) - all.begin()));
      scheduler.Append(s, bytes.tokens.back());
      if (s.length() == s.spec.max_len) scheduler.Remove(s);
    }
  }

  Machine machine_ = *Machine::Detect();
  ThreadPool threads_{2};
};

const std::vector<int64_t> kLengths = {3, 17, 40, 90};

TEST_P(PathsTest, AChoiceOfAllKeysGivesTheBytesOfTheAbsorbedPath) {
  for (const CacheDType cache :
       {CacheDType::Plain(DType::kBF16), CacheDType::Plain(DType::kF32),
        CacheDType{DType::kU8, CacheFormat::kI8}, CacheDType{DType::kU8, CacheFormat::kF8}}) {
    const auto want = Generate(kLengths, {}, 512, cache);
    ASSERT_EQ(want.size(), kLengths.size());
    for (const auto& [length, bytes] : want) ASSERT_EQ(std::ssize(bytes.tokens), kAnswer);
    for (const int64_t max_batch_tokens : {16, 512})
      for (const int64_t from : {0, 20}) {
        const Paths sparse = {.sparse_from = from, .topk = 2048};
        EXPECT_TRUE(Generate(kLengths, sparse, max_batch_tokens, cache) == want)
            << "from " << from << ", " << max_batch_tokens << " tokens per step, cache "
            << Name(cache);
      }
  }
}

// Prompts on both paths become sparse within a chunk, wherever chunks end.
TEST_P(PathsTest, TheBytesOfAChoiceDoNotDependOnChunks) {
  const PromptPath latent = [](int64_t, int64_t) { return MlaPath::kLatent; };
  for (const CacheDType cache :
       {CacheDType::Plain(DType::kBF16), CacheDType{DType::kU8, CacheFormat::kF8}})
    for (const PromptPath& prompt : {PromptPath(AlwaysAbsorbed), latent}) {
      const Paths paths = {.prompt = prompt, .sparse_from = 4};
      const auto want = Generate(kLengths, paths, 512, cache);
      EXPECT_FALSE(want == Generate(kLengths, {.prompt = prompt}, 512, cache)) << "all keys";
      for (const int64_t max_batch_tokens : {9, 16, 33})
        EXPECT_TRUE(Generate(kLengths, paths, max_batch_tokens, cache) == want)
            << max_batch_tokens << " tokens per step, cache " << Name(cache);
    }
}

// One prompt is latent, the others are absorbed; long prompts and answers are sparse.
TEST_P(PathsTest, EachSequenceOfAMixedStepHasTheBytesThatItHasAlone) {
  const auto cache = CacheDType::Plain(DType::kBF16);
  const PromptPath one_latent = [](int64_t new_tokens, int64_t) {
    return new_tokens == 40 ? MlaPath::kLatent : MlaPath::kAbsorbed;
  };
  const Paths mixed = {.prompt = one_latent, .sparse_from = 45};
  std::map<int64_t, Bytes> alone;
  for (const int64_t length : kLengths) alone.merge(Generate({length}, mixed, 512, cache));
  ASSERT_FALSE(alone.at(40) == Generate({40}, {.sparse_from = 45}, 512, cache).at(40))
      << "paths look alike";
  for (const int64_t max_batch_tokens : {64, 512}) {
    EXPECT_TRUE(Generate(kLengths, mixed, max_batch_tokens, cache) == alone) << max_batch_tokens;
    EXPECT_GE(most_paths_, 2u) << max_batch_tokens;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PathsTest, testing::Values("v32_sparse", "glm5", "glm52"),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::paths_test
