#include "src/checkpoint/expected_tensors.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/formats/formats.h"

namespace latte::expected_tensors_test {
namespace {

using Shape = std::vector<int64_t>;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Layer 0 is dense, layers 1…3 have 16 experts; no two sizes are equal.
ModelConfig Small() {
  ModelConfig config;
  config.architecture = "DeepseekV3ForCausalLM";
  config.layers = 4;
  config.vocab = 300;
  config.dense_width = 512;
  config.mtp_layers = 1;
  config.mla = {.d = 192, .h = 6, .cq = 80, .c = 64, .n = 32, .r = 16, .v = 24};
  config.moe = {.experts = 16,
                .chosen = 2,
                .shared = 2,
                .width = 96,
                .router = Router::kNoauxTc,
                .first_dense = 1};
  return config;
}

StoredTensors StoredFor(const ModelConfig& config) {
  StoredTensors tensors;
  for (const ExpectedTensor& want : ExpectedTensors(config))
    tensors[want.name] = {.dtype_name = "BF16", .shape = want.shape};
  return tensors;
}

// The expected shape of `name`; empty if there is no such tensor.
Shape ShapeOf(const ModelConfig& config, const std::string& name) {
  for (const ExpectedTensor& want : ExpectedTensors(config))
    if (want.name == name) return want.shape;
  return {};
}

Error CheckError(const ModelConfig& config, const StoredTensors& tensors) {
  const Status status = CheckTensors(config, tensors);
  if (status) ADD_FAILURE() << "accepted";
  return status ? Error{} : status.error();
}

TEST(ExpectedTensors, NamesAndShapesAreThoseOfTheCheckpoints) {
  const ModelConfig config = Small();
  const std::pair<const char*, Shape> kCases[] = {
      {"model.embed_tokens.weight", {300, 192}},
      {"model.norm.weight", {192}},
      {"lm_head.weight", {300, 192}},
      {"model.layers.0.input_layernorm.weight", {192}},
      {"model.layers.3.post_attention_layernorm.weight", {192}},
      {"model.layers.0.self_attn.q_a_proj.weight", {80, 192}},
      {"model.layers.0.self_attn.q_a_layernorm.weight", {80}},
      {"model.layers.0.self_attn.q_b_proj.weight", {6 * 48, 80}},
      {"model.layers.0.self_attn.kv_a_proj_with_mqa.weight", {80, 192}},
      {"model.layers.0.self_attn.kv_a_layernorm.weight", {64}},
      {"model.layers.0.self_attn.kv_b_proj.weight", {6 * 56, 64}},
      {"model.layers.0.self_attn.o_proj.weight", {192, 6 * 24}},
      {"model.layers.0.mlp.gate_proj.weight", {512, 192}},
      {"model.layers.0.mlp.up_proj.weight", {512, 192}},
      {"model.layers.0.mlp.down_proj.weight", {192, 512}},
      {"model.layers.1.mlp.gate.weight", {16, 192}},
      {"model.layers.1.mlp.gate.e_score_correction_bias", {16}},
      {"model.layers.1.mlp.experts.0.gate_proj.weight", {96, 192}},
      {"model.layers.3.mlp.experts.15.up_proj.weight", {96, 192}},
      {"model.layers.3.mlp.experts.15.down_proj.weight", {192, 96}},
      {"model.layers.1.mlp.shared_experts.gate_proj.weight", {192, 192}},
      {"model.layers.1.mlp.shared_experts.up_proj.weight", {192, 192}},
      {"model.layers.1.mlp.shared_experts.down_proj.weight", {192, 192}},
  };
  for (const auto& [name, shape] : kCases) EXPECT_EQ(ShapeOf(config, name), shape) << name;
  // Embedding, norm and head; per layer 2 norms and 7 tensors of attention; MLPs.
  EXPECT_EQ(ExpectedTensors(config).size(), 3u + 4 * 9 + 3 + 3 * (2 + 16 * 3 + 3));
}

TEST(ExpectedTensors, FollowTheConfig) {
  ModelConfig config = Small();
  config.mla.cq = 0;
  config.mla.bias = true;
  config.moe.router = Router::kGreedy;
  config.moe.shared = 0;
  EXPECT_EQ(ShapeOf(config, "model.layers.0.self_attn.q_proj.weight"), (Shape{6 * 48, 192}));
  EXPECT_EQ(ShapeOf(config, "model.layers.0.self_attn.q_a_proj.bias"), Shape());
  EXPECT_EQ(ShapeOf(config, "model.layers.0.self_attn.kv_a_proj_with_mqa.bias"), Shape{80});
  EXPECT_EQ(ShapeOf(config, "model.layers.0.self_attn.o_proj.bias"), Shape{192});
  EXPECT_EQ(ShapeOf(config, "model.layers.1.mlp.gate.e_score_correction_bias"), Shape());
  EXPECT_EQ(ShapeOf(config, "model.layers.1.mlp.shared_experts.up_proj.weight"), Shape());
  config.mla.cq = 80;
  EXPECT_EQ(ShapeOf(config, "model.layers.0.self_attn.q_a_proj.bias"), Shape{80});
  EXPECT_EQ(ShapeOf(config, "model.layers.0.self_attn.q_b_proj.bias"), Shape());
}

TEST(ExpectedTensors, IndexersOfTheLayersThatOwnOne) {
  ModelConfig config = Small();
  config.indexer = {.heads = 5, .width = 48, .topk = 7};
  config.indexed_layers = {true, false, true, false};
  const std::string indexer = "model.layers.2.self_attn.indexer.";
  EXPECT_EQ(ShapeOf(config, indexer + "wq_b.weight"), (Shape{240, 80}));
  EXPECT_EQ(ShapeOf(config, indexer + "wk.weight"), (Shape{48, 192}));
  EXPECT_EQ(ShapeOf(config, indexer + "k_norm.bias"), Shape{48});
  EXPECT_EQ(ShapeOf(config, indexer + "weights_proj.weight"), (Shape{5, 192}));
  EXPECT_EQ(ShapeOf(config, "model.layers.1.self_attn.indexer.wk.weight"), Shape{});
  StoredTensors tensors = StoredFor(config);
  // A layer that attends to the keys of another one may have an indexer too, which is not read.
  tensors["model.layers.1.self_attn.indexer.wk.weight"] = {"F32", {1}};
  EXPECT_TRUE(CheckTensors(config, tensors)) << CheckError(config, tensors).message;
  tensors.erase(indexer + "k_norm.bias");
  EXPECT_TRUE(Contains(CheckError(config, tensors).message, indexer + "k_norm.bias"));
}

TEST(ExpectedTensors, ExpertsInStacks) {
  const ModelConfig config = Small();
  StoredTensors tensors;
  for (const ExpectedTensor& want : ExpectedTensors(config, {.experts = ExpertLayout::kFused}))
    tensors[want.name] = {.dtype_name = "BF16", .shape = want.shape};
  EXPECT_EQ(tensors.at("model.layers.1.mlp.experts.gate_up_proj").shape, (Shape{16, 192, 192}));
  EXPECT_EQ(tensors.at("model.layers.1.mlp.experts.down_proj").shape, (Shape{16, 192, 96}));
  EXPECT_FALSE(tensors.contains("model.layers.1.mlp.experts.0.gate_proj.weight"));
  EXPECT_TRUE(CheckTensors(config, tensors));
  tensors.at("model.layers.2.mlp.experts.down_proj").shape = {15, 192, 96};
  EXPECT_TRUE(Contains(CheckError(config, tensors).message,
                       "'model.layers.2.mlp.experts.down_proj': expected [16, 192, 96], found "
                       "[15, 192, 96]"));
}

TEST(CheckTensors, RouterBiasAndPostNormOfAxk1) {
  ModelConfig config = Small();
  config.moe.bias_optional = true;
  config.moe.post_norm = true;
  StoredTensors tensors = StoredFor(config);
  for (int64_t i = 1; i < 4; ++i)
    tensors.erase(fmt::format("model.layers.{}.mlp.gate.e_score_correction_bias", i));
  tensors.erase("model.layers.0.post_mlp_layernorm.weight");
  EXPECT_TRUE(CheckTensors(config, tensors));
  tensors.erase("model.layers.1.post_mlp_layernorm.weight");
  EXPECT_TRUE(
      Contains(CheckError(config, tensors).message, "'model.layers.1.post_mlp_layernorm.weight'"));
}

TEST(CheckTensors, AcceptsExactlyTheCheckpointInAnyWeightDtype) {
  const ModelConfig config = Small();
  StoredTensors tensors = StoredFor(config);
  EXPECT_TRUE(CheckTensors(config, tensors).has_value());
  tensors["model.layers.1.mlp.gate.e_score_correction_bias"].dtype_name = "F32";
  tensors["model.norm.weight"].dtype_name = "F16";
  EXPECT_TRUE(CheckTensors(config, tensors).has_value());
}

TEST(CheckTensors, F39_NamesTheExpertOfAnotherShape) {
  const ModelConfig config = Small();
  StoredTensors tensors = StoredFor(config);
  tensors["model.layers.3.mlp.experts.7.up_proj.weight"].shape = {96, 191};
  const Error error = CheckError(config, tensors);
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_PRED2(Contains, error.message,
               "1 of another shape: tensor 'model.layers.3.mlp.experts.7.up_proj.weight': "
               "expected [96, 192], found [96, 191]");
}

TEST(CheckTensors, F23_ScalarWhereAVectorBelongs) {
  const ModelConfig config = Small();
  StoredTensors tensors = StoredFor(config);
  tensors["model.norm.weight"].shape = {};
  EXPECT_PRED2(Contains, CheckError(config, tensors).message, "expected [192], found []");
}

TEST(CheckTensors, F39_F40_NamesWhatIsMissing) {
  const ModelConfig config = Small();
  for (const char* name : {"model.layers.2.mlp.experts.15.down_proj.weight",
                           "model.layers.1.mlp.gate.e_score_correction_bias",
                           "model.embed_tokens.weight", "lm_head.weight"}) {
    StoredTensors tensors = StoredFor(config);
    tensors.erase(name);
    const Error error = CheckError(config, tensors);
    EXPECT_EQ(error.code, Code::kCorrupt);
    EXPECT_PRED2(Contains, error.message, fmt::format("1 missing: '{}'", name));
  }
}

TEST(CheckTensors, NamesWhatIsExtraEscaped) {
  const ModelConfig config = Small();
  StoredTensors tensors = StoredFor(config);
  tensors["model.layers.0.mlp.gate.weight"] = {.dtype_name = "BF16", .shape = {16, 192}};
  tensors["a\nb"] = {.dtype_name = "U8", .shape = {}};
  const Error error = CheckError(config, tensors);
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_PRED2(Contains, error.message,
               "2 unexpected: 'a\\x0ab', 'model.layers.0.mlp.gate.weight'");
}

TEST(CheckTensors, C17_ConfigThatDisagreesIsNamedWithBothSizes) {
  ModelConfig config = Small();
  const StoredTensors tensors = StoredFor(config);
  config.vocab = 301;
  const Error error = CheckError(config, tensors);
  EXPECT_PRED2(Contains, error.message,
               "tensor 'model.embed_tokens.weight': expected [301, 192], found [300, 192]");
  EXPECT_PRED2(Contains, error.message, "tensor 'lm_head.weight'");
}

TEST(CheckTensors, ListsTheFirstTenOfAKindAndCountsAll) {
  ModelConfig config = Small();
  const StoredTensors tensors = StoredFor(config);
  config.moe.experts = 17;
  config.moe.shared = 0;
  const Error error = CheckError(config, tensors);
  EXPECT_PRED2(Contains, error.message, "9 missing: 'model.layers.1.mlp.experts.16.gate_proj");
  EXPECT_PRED2(Contains, error.message, "9 unexpected: ");
  EXPECT_PRED2(Contains, error.message, "6 of another shape: ");
  config = Small();
  config.moe.experts = 20;
  const Error many = CheckError(config, tensors);
  EXPECT_PRED2(Contains, many.message, "36 missing: 'model.layers.1.mlp.experts.16.gate_proj");
  EXPECT_EQ(std::count(many.message.begin(), many.message.end(), '\''), 2 * (10 + 6));
}

TEST(CheckTensors, F26_F27_OtherDtypesAreUnsupportedByName) {
  const ModelConfig config = Small();
  for (const char* dtype : {"I64", "F8_E4M3", "F64", "U8"}) {
    StoredTensors tensors = StoredFor(config);
    tensors["model.layers.1.mlp.experts.3.up_proj.weight"].dtype_name = dtype;
    const Error error = CheckError(config, tensors);
    EXPECT_EQ(error.code, Code::kUnsupported);
    EXPECT_PRED2(Contains, error.message,
                 fmt::format("'model.layers.1.mlp.experts.3.up_proj.weight' is {}", dtype));
    EXPECT_PRED2(Contains, error.message, "dtype that is not read there");
  }
}

TEST(CheckTensors, F27_F28_Fp8MatricesNeedScalesOfTheBlocksShape) {
  ModelConfig config = Small();
  config.quant = {{{.format = &kFp8Weights, .block_rows = 64, .block_columns = 100}}};
  const std::string matrix = "model.layers.1.mlp.experts.3.up_proj.weight";
  StoredTensors tensors = StoredFor(config);
  tensors[matrix].dtype_name = "F8_E4M3";
  EXPECT_PRED2(Contains, CheckError(config, tensors).message,
               fmt::format("1 missing: '{}_scale_inv'", matrix));
  const int64_t rows = (tensors[matrix].shape[0] + 63) / 64;
  const int64_t columns = (tensors[matrix].shape[1] + 99) / 100;
  tensors[matrix + "_scale_inv"] = {.dtype_name = "F32", .shape = {rows, columns}};
  EXPECT_TRUE(CheckTensors(config, tensors).has_value());
  tensors[matrix + "_scale_inv"].shape = {rows, columns + 1};
  EXPECT_PRED2(Contains, CheckError(config, tensors).message, "of another shape");
  tensors[matrix].dtype_name = "BF16";  // a plain matrix has no scales
  EXPECT_PRED2(Contains, CheckError(config, tensors).message, "1 unexpected");
  tensors = StoredFor(config);
  tensors["model.layers.1.mlp.gate.weight"].dtype_name = "F8_E4M3";
  EXPECT_PRED2(Contains, CheckError(config, tensors).message, "mlp.gate.weight' is F8_E4M3");
}

TEST(CheckTensors, Fp8MatricesMayHaveOneScaleAndScalesOfActivations) {
  ModelConfig config = Small();
  config.quant = {{{.format = &kFp8Weights,
                    .block_rows = QuantScheme::kAll,
                    .block_columns = QuantScheme::kAll}}};
  StoredTensors tensors;
  for (const ExpectedTensor& want : ExpectedTensors(config, {.experts = ExpertLayout::kFused}))
    tensors[want.name] = {.dtype_name = "BF16", .shape = want.shape};
  const std::string stack = "model.layers.1.mlp.experts.gate_up_proj";
  const std::string matrix = "model.layers.1.self_attn.kv_a_proj_with_mqa.weight";
  for (const std::string& name : {stack, matrix}) tensors[name].dtype_name = "F8_E4M3";
  tensors[stack + "_scale_inv"] = {.dtype_name = "BF16", .shape = {16, 1, 1}};
  tensors[matrix + "_scale_inv"] = {.dtype_name = "BF16", .shape = {}};
  tensors[stack + "_activation_scale"] = {.dtype_name = "BF16", .shape = {16}};
  for (const char* part : {"kv_a_proj_with_mqa", "o_proj"})
    tensors[fmt::format("model.layers.1.self_attn.{}.activation_scale", part)] = {
        .dtype_name = "BF16", .shape = {}};
  const Status status = CheckTensors(config, tensors);
  EXPECT_TRUE(status) << status.error().message;
  tensors[matrix + "_scale_inv"].shape = {1, 1};
  EXPECT_PRED2(Contains, CheckError(config, tensors).message, "expected [], found [1, 1]");
}

TEST(CheckTensors, F41_TiedModelsMayHaveAHeadAndOthersMust) {
  ModelConfig config = Small();
  StoredTensors tensors = StoredFor(config);
  config.tied_embeddings = true;
  EXPECT_TRUE(CheckTensors(config, tensors).has_value());
  tensors.erase("lm_head.weight");
  EXPECT_TRUE(CheckTensors(config, tensors).has_value());
  tensors["lm_head.weight"] = {.dtype_name = "BF16", .shape = {299, 192}};
  EXPECT_PRED2(Contains, CheckError(config, tensors).message, "found [299, 192]");
  config.tied_embeddings = false;
  tensors.erase("lm_head.weight");
  EXPECT_PRED2(Contains, CheckError(config, tensors).message, "1 missing: 'lm_head.weight'");
}

TEST(CheckTensors, SetsMtpLayersAndOldRotaryTablesAside) {
  const ModelConfig config = Small();
  StoredTensors tensors = StoredFor(config);
  tensors["model.layers.4.eh_proj.weight"] = {.dtype_name = "BF16", .shape = {192, 384}};
  tensors["model.layers.4.mlp.experts.0.up_proj.weight"] = {.dtype_name = "F8_E4M3", .shape = {}};
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {.dtype_name = "F32", .shape = {8}};
  EXPECT_TRUE(CheckTensors(config, tensors).has_value());
}

TEST(CheckTensors, SetsMtpLayersAsideThatLackATensor) {
  const ModelConfig config = Small();
  for (const char* own : {"eh_proj", "enorm", "hnorm", "shared_head.norm"}) {
    StoredTensors tensors = StoredFor(config);
    tensors[fmt::format("model.layers.4.{}.weight", own)] = {.dtype_name = "BF16", .shape = {192}};
    tensors["model.layers.4.mlp.up_proj.weight"] = {.dtype_name = "BF16", .shape = {8, 8}};
    EXPECT_TRUE(CheckTensors(config, tensors).has_value()) << own;
  }
}

TEST(CheckTensors, LayersBeyondTheLastAreExtraUnlessTheyAreMtp) {
  ModelConfig config = Small();
  const StoredTensors tensors = StoredFor(config);
  config.layers = 3;
  const Error error = CheckError(config, tensors);
  EXPECT_PRED2(Contains, error.message, "unexpected: 'model.layers.3.input_layernorm.weight'");
  EXPECT_PRED2(Contains, error.message, "with 3 layers");
  StoredTensors odd = tensors;
  config.layers = 4;
  for (const char* name : {"model.layers.99999999999999999999.eh_proj.weight", "model.layers..x",
                           "model.layers.-1.eh_proj.weight"}) {
    odd = tensors;
    odd[name] = {.dtype_name = "BF16", .shape = {}};
    EXPECT_PRED2(Contains, CheckError(config, odd).message, fmt::format("unexpected: '{}'", name));
  }
}

TEST(ExpectedTensors, TensorsOfOtherToolsNameTheTool) {
  const ModelConfig config = Small();
  const std::pair<const char*, const char*> kCases[] = {{".biases", "MLX"},
                                                        {".weight.absmax", "bitsandbytes"},
                                                        {".q_scale_max", "EXL2"},
                                                        {".trellis", "EXL3"},
                                                        {".W_q", "HQQ"}};
  for (const auto& [end, tool] : kCases) {
    StoredTensors tensors = StoredFor(config);
    const std::string name = std::string("model.layers.1.self_attn.o_proj") + end;
    tensors[name] = {.dtype_name = "U32", .shape = {192, 18}};
    const Error error = CheckError(config, tensors);
    EXPECT_EQ(error.code, Code::kUnsupported) << end;
    EXPECT_PRED2(Contains, error.message, tool);
    EXPECT_PRED2(Contains, error.message, name);
    EXPECT_PRED2(Contains, error.message, "take the original checkpoint");
  }
}

}  // namespace
}  // namespace latte::expected_tensors_test
