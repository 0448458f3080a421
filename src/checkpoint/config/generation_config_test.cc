#include "src/checkpoint/config/generation_config.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace latte::generation_config_test {
namespace {

class GenerationConfig : public testing::Test {
 protected:
  Result<GenerationDefaults> Load(const std::string& text) {
    std::ofstream(dir_.File("generation_config.json")) << text;
    return LoadGenerationDefaults(dir_.path());
  }
  testing_support::ScratchDir dir_;
};

TEST_F(GenerationConfig, EveryValueArrives) {
  const auto read = Load(R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95,
                             "min_p": 0.05, "repetition_penalty": 1.1})");
  ASSERT_TRUE(read) << ToString(read.error());
  SamplingParams params;
  read->ApplyTo(&params);
  EXPECT_EQ(params.temperature, 0.6);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.top_p, 0.95);
  EXPECT_EQ(params.min_p, 0.05);
  EXPECT_EQ(params.repetition_penalty, 1.1);
}

TEST_F(GenerationConfig, NullIsAsGoodAsAbsentAndMinusOneMeansAllTokens) {
  for (const char* text :
       {R"({"do_sample": true})", R"({"do_sample": true, "top_k": -1})",
        R"({"do_sample": true, "top_k": 0, "top_p": 1, "min_p": 0, "temperature": 1})",
        R"({"do_sample": true, "top_k": null, "top_p": null, "min_p": null, "temperature": null,
            "repetition_penalty": null})"}) {
    const auto read = Load(text);
    ASSERT_TRUE(read) << text << ToString(read.error());
    EXPECT_EQ(read->temperature, 1.0) << text;
    EXPECT_EQ(read->top_k, 0) << text;
    EXPECT_EQ(read->top_p, 1.0) << text;
    EXPECT_EQ(read->min_p, 0.0) << text;
    EXPECT_EQ(read->repetition_penalty, 1.0) << text;
  }
}

TEST_F(GenerationConfig, WithoutDoSampleOnlyTheRepetitionPenaltyCounts) {
  for (const char* more : {"", R"(, "do_sample": false)", R"(, "do_sample": null)"}) {
    const auto read =
        Load(std::string(R"({"temperature": 0.6, "top_k": -5, "top_p": 7, "min_p": 0.5,
                                           "repetition_penalty": 1.1)") +
             more + "}");
    ASSERT_TRUE(read) << ToString(read.error());
    EXPECT_EQ(read->temperature, 0.0);
    EXPECT_EQ(read->top_k, 0);
    EXPECT_EQ(read->min_p, 0.0);
    EXPECT_EQ(read->repetition_penalty, 1.1);
  }
}

TEST_F(GenerationConfig, WhatIsOutOfRangeIsBlamedOnTheFileAndItsKey) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"("top_k": -2)", "top_k"},
      {R"("top_k": 1.5)", "top_k"},
      {R"("top_k": "all")", "top_k"},
      {R"("top_p": 0)", "top_p"},
      {R"("top_p": 1.01)", "top_p"},
      {R"("top_p": -0.1)", "top_p"},
      {R"("min_p": -0.1)", "min_p"},
      {R"("min_p": 1.1)", "min_p"},
      {R"("temperature": -1)", "temperature"},
      {R"("temperature": 101)", "temperature"},
      {R"("temperature": "hot")", "temperature"},
      {R"("repetition_penalty": 0)", "repetition_penalty"},
      {R"("repetition_penalty": -1)", "repetition_penalty"},
      {R"("repetition_penalty": 1e9)", "repetition_penalty"}};
  for (const auto& [member, key] : kCases) {
    const auto read = Load(std::string(R"({"do_sample": true, )") + member + "}");
    ASSERT_FALSE(read) << member;
    EXPECT_EQ(read.error().code, Code::kCorrupt) << member;
    EXPECT_NE(read.error().message.find(dir_.File("generation_config.json") + ": '" + key + "'"),
              std::string::npos)
        << read.error().message;
  }
}

}  // namespace
}  // namespace latte::generation_config_test
