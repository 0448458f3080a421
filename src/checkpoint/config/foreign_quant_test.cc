#include "src/checkpoint/config/foreign_quant.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "src/checkpoint/config/model_config.h"

namespace latte::foreign_quant_test {
namespace {

Status Check(const std::string& config) {
  return CheckNotForeign(Json::Parse(config, "config.json").value());
}

TEST(ForeignQuant, ConfigsNameTheirTool) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"quantization": {"group_size": 64, "bits": 4}})", "MLX"},
      {R"({"quantization": {"group_size": 32, "bits": 8, "mode": "affine",
           "model.layers.1.mlp.gate": {"group_size": 64, "bits": 8}}})",
       "MLX"},
      {R"({"quantization": {"bits": 4, "group_size": 64},
           "quantization_config": {"bits": 4, "group_size": 64}})",
       "MLX"},
      {R"({"quantization_config": {"group_size": 64, "bits": 4}})", "MLX"},
      {R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}})",
       "bitsandbytes"},
      {R"({"quantization_config": {"load_in_8bit": true, "llm_int8_threshold": 6.0}})",
       "bitsandbytes"},
      {R"({"quantization_config": {"quant_method": "gguf"}})", "llama.cpp"},
      {R"({"quantization_config": {"quant_method": "exl2", "bits": 4.65}})", "EXL2"},
      {R"({"quantization_config": {"quant_method": "exl3", "bits": 3.5}})", "EXL3"},
      {R"({"quantization_config": {"quant_method": "hqq"}})", "HQQ"},
      {R"({"quantization_config": {"quant_method": "quanto"}})", "quanto"},
      {R"({"quantization_config": {"quant_method": "torchao"}})", "torchao"},
      {R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})",
       "ModelOpt"},
      {R"({"quantization_config": {"producer": {"name": "modelopt"}, "quant_algo": "FP8"}})",
       "ModelOpt"},
      {R"({"quantization_config": {"quant_method": "mxfp4"}})", "MXFP4"},
      {R"({"quantization_config": {"quant_method": "auto-round", "bits": 4}})", "AutoRound"},
      {R"({"quantization_config": {"quant_method": "quark"}})", "Quark"}};
  for (const auto& [config, tool] : kCases) {
    const Status status = Check(config);
    ASSERT_FALSE(status) << config;
    EXPECT_EQ(status.error().code, Code::kUnsupported);
    for (const std::string_view words :
         {std::string_view(tool), CopyToTake(), std::string_view("config.json: 'quantization")})
      EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
  }
}

TEST(ForeignQuant, WhatIsReadHereOrUnknownIsNoneOfThem) {
  for (const char* config :
       {"{}", R"({"quantization": null, "quantization_config": null})",
        R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})",
        R"({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}})",
        R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}})",
        R"({"quantization_config": {"quant_method": "compressed-tensors"}})",
        R"({"quantization_config": {"w_bit": 4, "q_group_size": 128, "version": "gemm"}})",
        R"({"quantization_config": {"quant_method": "newest"}})", R"({"quantization": "none"})",
        R"({"quantization_config": "fp8"})", R"({"quantization_config": {"quant_method": 7}})"})
    EXPECT_TRUE(Check(config)) << config;
}

TEST(ForeignQuant, TensorsNameTheirTool) {
  const std::string layer = "model.layers.0.self_attn.o_proj";
  const std::pair<const char*, const char*> kCases[] = {
      {".biases", "MLX"},
      {".weight.absmax", "bitsandbytes"},
      {".weight.quant_state.bitsandbytes__nf4", "bitsandbytes"},
      {".SCB", "bitsandbytes"},
      {".q_scale_max", "EXL2"},
      {".trellis", "EXL3"},
      {".W_q", "HQQ"},
      {".weight._data", "quanto"},
      {".weight_scale_2", "ModelOpt"}};
  for (const auto& [end, tool] : kCases) {
    const auto found = ToolOfTensor(layer + end);
    ASSERT_TRUE(found) << end;
    EXPECT_NE(found->find(tool), std::string_view::npos) << *found;
  }
  for (const char* own : {".weight", ".bias", ".weight_scale_inv", ".weight_scale",
                          ".weight_packed", ".qweight", ".qzeros", ".scales", ".g_idx"})
    EXPECT_FALSE(ToolOfTensor(layer + own)) << own;
}

}  // namespace
}  // namespace latte::foreign_quant_test
