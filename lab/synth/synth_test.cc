#include "lab/synth/synth.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_size.h"
#include "src/jobs/score.h"
#include "src/models/registry.h"

namespace latte::synth_test {
namespace {

namespace fs = std::filesystem;

ModelConfig Parse(const JsonOut& config) {
  return *ParseModelConfig(*Json::Parse(Dump(config), "test"));
}

class SynthTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / fmt::format("latte_{}_{}", getpid(), info->name());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Dir(const std::string& name) const { return (root_ / name).string(); }
  // The number of entries in the folder of the test.
  int64_t Entries() const {
    return std::distance(fs::directory_iterator(root_), fs::directory_iterator());
  }

  // Two layers, few tokens and few experts: one whole layer of each kind.
  static SynthSpec Small(const std::string& shape, SynthFormat format = {}) {
    SynthSpec spec = {.shape = shape, .layers = 2, .vocab = 64, .experts = 6, .format = format};
    return spec;
  }

  fs::path root_;
  ThreadPool threads_{2};
};

// 187 M parameters of attention per layer, as in V3, and 0.63 B in total.
TEST_F(SynthTest, V3AttnHasTheAttentionOfV3) {
  const ParamCount small = CountParams(Parse(*SynthConfig({.shape = "v3-attn"})));
  const ParamCount whole = CountParams(Parse(*SynthConfig({.shape = "v3", .layers = 2})));
  EXPECT_EQ(small.attention, whole.attention);
  EXPECT_EQ(small.total() / 10'000'000, 63);
}

TEST_F(SynthTest, ShapesAreThoseOfThePublishedConfigs) {
  const std::pair<const char*, const char*> kFiles[] = {
      {"v2-lite", "v2_lite"},  {"v2", "v2"},           {"v3", "v3"},
      {"v3.2", "v3_2"},        {"kimi-k2", "kimi_k2"}, {"glm-4.7-flash", "glm_4_7_flash"},
      {"minicpm3", "minicpm3"}};
  // v3-attn, v3-lite and v3-micro are not published models.
  ASSERT_EQ(std::size(kFiles) + 3, SynthShapes().size());
  for (const auto& [shape, file] : kFiles) {
    const std::string path = fmt::format("{}/tests/data/configs/{}.json", LATTE_SOURCE_DIR, file);
    const ModelConfig real = *LoadModelConfig(path);
    const ModelConfig made = Parse(*SynthConfig({.shape = shape}));
    EXPECT_EQ(CountParams(made).total(), CountParams(real).total()) << shape;
    EXPECT_EQ(CountActiveParams(made).total(), CountActiveParams(real).total()) << shape;
    EXPECT_EQ(made.architecture, real.architecture);
    EXPECT_EQ(made.max_position, real.max_position) << shape;
    EXPECT_EQ(made.norm_eps, real.norm_eps) << shape;
    EXPECT_EQ(made.bos, real.bos) << shape;
    EXPECT_EQ(made.eos.front(), real.eos.front()) << shape;
    EXPECT_EQ(made.moe.router, real.moe.router) << shape;
    EXPECT_EQ(made.moe.scoring, real.moe.scoring) << shape;
    EXPECT_EQ(made.moe.normalize, real.moe.normalize) << shape;
    EXPECT_EQ(made.moe.groups_kept, real.moe.groups_kept) << shape;
    EXPECT_EQ(made.moe.scale, real.moe.scale) << shape;
    EXPECT_EQ(made.moe.first_dense, real.moe.first_dense) << shape;
    EXPECT_EQ(made.rope.theta, real.rope.theta) << shape;
    EXPECT_EQ(made.rope.factor, real.rope.factor) << shape;
    EXPECT_EQ(made.rope.beta_fast, real.rope.beta_fast) << shape;
    EXPECT_EQ(made.rope.mscale_all_dim, real.rope.mscale_all_dim) << shape;
    EXPECT_EQ(made.rope.interleaved, real.rope.interleaved) << shape;
    EXPECT_EQ(made.indexer.topk, real.indexer.topk) << shape;
    EXPECT_EQ(made.indexer.interleaved, real.indexer.interleaved) << shape;
    EXPECT_EQ(made.mtp_layers, 0) << shape;
    EXPECT_EQ(made.tied_embeddings, real.tied_embeddings) << shape;
    EXPECT_EQ(made.rope.pair_factors, real.rope.pair_factors) << shape;
    EXPECT_EQ(made.scales.embedding, real.scales.embedding) << shape;
    EXPECT_EQ(made.scales.residual, real.scales.residual) << shape;
    EXPECT_EQ(made.scales.head, real.scales.head) << shape;
  }
}

TEST_F(SynthTest, V3LiteHasTheRulesOfV3AndTheWidthsOfV2Lite) {
  const ModelConfig made = Parse(*SynthConfig({.shape = "v3-lite"}));
  const ModelConfig rules = Parse(*SynthConfig({.shape = "v3", .mtp = 1}));
  const ModelConfig widths = Parse(*SynthConfig({.shape = "v2-lite"}));
  EXPECT_EQ(made.architecture, rules.architecture);
  EXPECT_EQ(made.mtp_layers, rules.mtp_layers);
  EXPECT_EQ(made.moe.router, rules.moe.router);
  EXPECT_EQ(made.moe.scoring, rules.moe.scoring);
  EXPECT_EQ(made.moe.groups, rules.moe.groups);
  EXPECT_EQ(made.moe.groups_kept, rules.moe.groups_kept);
  EXPECT_EQ(made.moe.normalize, rules.moe.normalize);
  EXPECT_EQ(made.moe.scale, rules.moe.scale);
  EXPECT_EQ(made.rope.mscale, rules.rope.mscale);
  const ParamCount count = CountParams(made);
  const ParamCount lite = CountParams(widths);
  EXPECT_EQ(count.embedding, lite.embedding);
  EXPECT_EQ(count.dense_mlp, lite.dense_mlp);
  EXPECT_EQ(count.routed_experts, lite.routed_experts);
  EXPECT_EQ(count.shared_experts, lite.shared_experts);
  EXPECT_EQ(made.mla.latent(), widths.mla.latent());
  EXPECT_EQ(made.mla.expanded(), widths.mla.expanded());
  EXPECT_GT(made.mla.cq, 0);
}

TEST_F(SynthTest, FirstLayersWithoutExperts) {
  SynthSpec spec = {.shape = "v3.2", .layers = 2, .experts = 32};
  EXPECT_FALSE(Parse(*SynthConfig(spec)).IsMoe(1));  // three are dense in the model
  spec.dense = 1;
  const ModelConfig config = Parse(*SynthConfig(spec));
  EXPECT_FALSE(config.IsMoe(0));
  EXPECT_TRUE(config.IsMoe(1));
  EXPECT_TRUE(config.IsIndexed(0) && config.IsIndexed(1));
  spec.dense = 5;
  EXPECT_EQ(Parse(*SynthConfig(spec)).moe.first_dense, 2);
}

TEST_F(SynthTest, DraftingLayersAreAddedToTheOtherTensors) {
  SynthSpec spec = {.shape = "v3-lite", .layers = 1, .vocab = 64, .experts = 16, .mtp = 0};
  spec.format = *ParseSynthFormat("int8");
  ASSERT_TRUE(WriteSynth(spec, Dir("without"), threads_));
  EXPECT_FALSE(LoadModel(Dir("without"), {.mtp = true}));
  spec.mtp.reset();
  const auto report = WriteSynth(spec, Dir("with"), threads_);
  ASSERT_TRUE(report) << ToString(report.error());
  const auto model = LoadModel(Dir("with"), {.mtp = true});
  ASSERT_TRUE(model) << ToString(model.error());
  EXPECT_TRUE((*model)->drafts());
  const Checkpoint without = *Checkpoint::Open(Dir("without"));
  const Checkpoint with = *Checkpoint::Open(Dir("with"));
  EXPECT_GT(with.tensors().size(), without.tensors().size());
  for (const auto& [name, tensor] : without.tensors())
    EXPECT_EQ(std::memcmp(without.View(tensor).data, with.View(*with.Find(name)).data,
                          static_cast<size_t>(tensor.bytes)),
              0)
        << name;
}

TEST_F(SynthTest, ACompactSpecSaysTheSame) {
  const auto spec =
      ParseSynthSpec("v2-lite:layers=4,dense=2,vocab=16384,dtype=int4,experts=9,mtp=1,seed=3");
  ASSERT_TRUE(spec) << ToString(spec.error());
  EXPECT_EQ(spec->shape, "v2-lite");
  EXPECT_EQ(spec->layers, 4);
  EXPECT_EQ(spec->dense, 2);
  EXPECT_EQ(spec->mtp, 1);
  EXPECT_EQ(spec->vocab, 16384);
  EXPECT_EQ(spec->experts, 9);
  ASSERT_TRUE(spec->format.quant.has_value());
  EXPECT_EQ(spec->format.quant->format->encoder->name, "int4");
  EXPECT_EQ(spec->seed, 3u);
  EXPECT_FALSE(ParseSynthSpec("v3")->layers);
  for (const char* bad : {"", "v9", "v3:layers", "v3:layers=", "v3:layers=-1", "v3:layers=2x",
                          "v3:dtype=int3", "v3:heads=4"}) {
    const auto found = ParseSynthSpec(bad);
    ASSERT_FALSE(found) << bad;
    EXPECT_EQ(found.error().code, Code::kInvalidArgument) << bad;
  }
}

TEST_F(SynthTest, RefusesNumbersThatNoModelHas) {
  for (const SynthSpec& spec :
       {SynthSpec{.shape = "v3", .layers = 0}, SynthSpec{.shape = "v3", .vocab = 0},
        SynthSpec{.shape = "v3", .experts = 9}, SynthSpec{.shape = "v4"}})
    EXPECT_EQ(SynthConfig(spec).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Parse(*SynthConfig({.shape = "v3", .layers = 2})).moe.first_dense, 2);
}

TEST_F(SynthTest, EveryPlainFormatLoadsAndRuns) {
  const Machine machine = *Machine::Detect();
  for (const char* name : {"bf16", "f32", "fp8"}) {
    const SynthFormat format = *ParseSynthFormat(name);
    const std::string dir = Dir(name);
    const SynthSpec spec = Small("v2-lite", format);
    const auto report = WriteSynth(spec, dir, threads_);
    ASSERT_TRUE(report) << ToString(report.error());
    EXPECT_EQ(report->params, CountParams(Parse(*SynthConfig(spec))).total());
    const auto model = LoadModel(dir);
    ASSERT_TRUE(model) << ToString(model.error());
    const auto settings = ResolveOptionsForOne({.threads = 2}, (*model)->config(), machine, 8);
    const auto sequence = GivenSequence::Create(**model, machine, *settings);
    std::vector<int64_t> seen;
    const auto score = Score(**sequence, std::vector<int32_t>{1, 2, 3, 4}, 64, {}, {},
                             [&](int64_t done, int64_t total, std::string_view) {
                               seen.assign({done, total});
                             });
    ASSERT_TRUE(score) << ToString(score.error());
    EXPECT_EQ(seen, (std::vector<int64_t>{4, 4}));
    EXPECT_TRUE(std::isfinite(score->total));
  }
}

TEST_F(SynthTest, WeightsAreNormalAndOfTheSeed) {
  SynthSpec spec = Small("v2-lite", {.plain = DType::kF32});
  spec.layers = 1;
  ASSERT_TRUE(WriteSynth(spec, Dir("a"), threads_));
  const Checkpoint checkpoint = *Checkpoint::Open(Dir("a"));
  const TensorView w = checkpoint.View(*checkpoint.Find("model.layers.0.self_attn.o_proj.weight"));
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  const auto count = static_cast<double>(w.elements());
  for (int64_t i = 0; i < w.elements(); ++i) {
    const double x = w.Ptr<float>()[i];
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  const double variance = squares / count;
  EXPECT_NEAR(sum / count, 0, 5 * 0.02 / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(variance), 0.02, 5e-5);
  EXPECT_NEAR(fourth / count / (variance * variance), 3 - 0.3, 0.02);  // four uniforms: 3 − 1.2/4
  const auto bytes = [&](const std::string& name) {
    return *ReadFile(Dir(name) + "/model.safetensors", int64_t{8} << 30);
  };
  ThreadPool one(1);
  ASSERT_TRUE(WriteSynth(spec, Dir("b"), one));
  EXPECT_TRUE(bytes("a") == bytes("b"));
  spec.seed = 1;
  ASSERT_TRUE(WriteSynth(spec, Dir("b"), one, {.force = true}));
  EXPECT_FALSE(bytes("a") == bytes("b"));
}

TEST_F(SynthTest, ShardsHaveAnIndexAndHoldTheSame) {
  SynthSpec spec = Small("v2-lite");
  spec.layers = 1;
  ASSERT_TRUE(WriteSynth(spec, Dir("one"), threads_));
  ASSERT_TRUE(WriteSynth(spec, Dir("many"), threads_, {.shard_bytes = 32 << 20}));
  EXPECT_TRUE(fs::exists(Dir("many") + "/model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(Dir("many") + "/model.safetensors"));
  const Checkpoint one = *Checkpoint::Open(Dir("one"));
  const auto many = Checkpoint::Open(Dir("many"));
  ASSERT_TRUE(many) << ToString(many.error());
  EXPECT_GT(many->files().size(), 2u);
  ASSERT_EQ(one.tensors().size(), many->tensors().size());
  for (const auto& [name, tensor] : one.tensors()) {
    const StoredTensor& other = *many->Find(name);
    ASSERT_EQ(tensor.bytes, other.bytes) << name;
    EXPECT_EQ(std::memcmp(one.View(tensor).data, many->View(other).data,
                          static_cast<size_t>(tensor.bytes)),
              0)
        << name;
  }
}

TEST_F(SynthTest, AFolderWithFilesIsLeftAlone) {
  SynthSpec spec = Small("v2-lite");
  spec.layers = 1;
  fs::create_directories(Dir("mine"));
  std::ofstream(Dir("mine") + "/notes.txt") << "keep";
  for (const bool force : {false, true}) {  // --force replaces checkpoints only
    const auto refused = WriteSynth(spec, Dir("mine"), threads_, {.force = force});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(fs::exists(Dir("mine") + "/notes.txt"));
  }
  fs::create_directories(Dir("empty"));
  EXPECT_TRUE(WriteSynth(spec, Dir("empty") + "/", threads_));
  EXPECT_FALSE(WriteSynth(spec, Dir("empty"), threads_));
  EXPECT_TRUE(WriteSynth(spec, Dir("empty"), threads_, {.force = true}));
  EXPECT_FALSE(WriteSynth(spec, Dir("no/such/parent"), threads_));
  EXPECT_EQ(Entries(), 2);  // no temporary folder is left
}

TEST_F(SynthTest, ADiskThatIsTooSmallIsToldBeforeAnythingIsWritten) {
  if (fs::space(root_).available > uint64_t{4'000'000'000'000}) GTEST_SKIP() << "a large disk";
  const auto refused =
      WriteSynth({.shape = "kimi-k2", .format = {.plain = DType::kF32}}, Dir("k2"), threads_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  EXPECT_NE(refused.error().message.find("GB free"), std::string::npos);
  EXPECT_EQ(Entries(), 0);
}

TEST_F(SynthTest, ATemporaryOneGoesWithItsObject) {
  std::string dir;
  {
    const auto synth = TemporarySynth::Make(Small("v2-lite"), threads_);
    ASSERT_TRUE(synth) << ToString(synth.error());
    dir = synth->dir();
    EXPECT_TRUE(LoadModel(dir));
  }
  EXPECT_FALSE(fs::exists(dir));
}

}  // namespace
}  // namespace latte::synth_test
