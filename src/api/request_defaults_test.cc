// generation_config.json provides the defaults of a request.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "src/api/request.h"
#include "src/checkpoint/model_path.h"
#include "tests/support/scratch_dir.h"

namespace latte::request_defaults_test {
namespace {

namespace fs = std::filesystem;

// The model "tiny" with another generation_config.json.
class ApiDefaults : public testing::Test {
 protected:
  ApiDefaults() {
    for (const auto& file : fs::directory_iterator(ResolveModelPath("tiny").value()))
      if (file.path().filename() != "generation_config.json")
        fs::create_symlink(file.path(), fs::path(dir_.path()) / file.path().filename());
  }
  Result<ApiModel> Model() {
    LATTE_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Load(dir_.path()));
    return ApiModel::Create(dir_.path(), files);
  }
  void Recommend(const std::string& text) {
    std::ofstream(dir_.File("generation_config.json")) << text;
  }
  // The temperature of requests over HTTP that give none.
  double TemperatureOverHttp(ApiEndpoint endpoint, const std::string& body) {
    ApiModel model = Model().value();
    model.UseApiDefaults();
    const auto parsed = ParseApiBody(endpoint, body, model);
    if (!parsed) ADD_FAILURE() << parsed.error().message;
    return parsed ? parsed->requests.front().sampling.temperature : -1;
  }
  Result<ApiRequest> Ask(const std::string& recommended, const std::string& members) {
    Recommend(recommended);
    LATTE_ASSIGN_OR_RETURN(const ApiModel model, Model());
    return ParseApiRequest(ApiEndpoint::kCompletions,
                           Json::Parse(R"({"prompt": "Once")" + members + "}", "body").value(),
                           model);
  }
  SamplingParams Params(const std::string& recommended, const std::string& members) {
    const Result<ApiRequest> parsed = Ask(recommended, members);
    if (!parsed) ADD_FAILURE() << parsed.error().message;
    return parsed ? parsed->requests.front().sampling : SamplingParams();
  }
  testing_support::ScratchDir dir_;
};

constexpr const char* kAll = R"({"do_sample": true, "temperature": 0.6, "top_k": 20,
    "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.1})";

TEST_F(ApiDefaults, AllOfThemReachARequestThatSaysNothing) {
  for (const char* members : {"", R"(, "temperature": null, "top_k": null, "top_p": null,
                                     "min_p": null, "repetition_penalty": null)"}) {
    const SamplingParams params = Params(kAll, members);
    EXPECT_EQ(params.temperature, 0.6);
    EXPECT_EQ(params.top_k, 20);
    EXPECT_EQ(params.top_p, 0.95);
    EXPECT_EQ(params.min_p, 0.05);
    EXPECT_EQ(params.repetition_penalty, 1.1);
  }
}

constexpr std::pair<ApiEndpoint, const char*> kBodies[] = {
    {ApiEndpoint::kChat, R"("messages": [{"role": "user", "content": "Hi"}]})"},
    {ApiEndpoint::kCompletions, R"("prompt": "Hi"})"},
    {ApiEndpoint::kResponses, R"("input": "Hi"})"},
    {ApiEndpoint::kMessages,
     R"("max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]})"}};

// A checkpoint that recommends nothing: a server samples as the API says, and a batch takes the
// likeliest tokens.
TEST_F(ApiDefaults, OverHttpTheApisTemperatureHolds) {
  for (const auto& [endpoint, body] : kBodies) {
    EXPECT_EQ(TemperatureOverHttp(endpoint, std::string("{") + body), 1) << body;
    EXPECT_EQ(TemperatureOverHttp(endpoint, std::string(R"({"temperature": null, )") + body), 1);
    EXPECT_EQ(TemperatureOverHttp(endpoint, std::string(R"({"temperature": 0, )") + body), 0);
    EXPECT_EQ(TemperatureOverHttp(endpoint, std::string(R"({"temperature": 0.3, )") + body), 0.3);
    const auto batch = ParseApiBody(endpoint, std::string("{") + body, Model().value());
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->requests.front().sampling.temperature, 0) << body;
  }
}

TEST_F(ApiDefaults, OverHttpARecommendationWins) {
  for (const auto& [recommended, temperature] :
       {std::pair(R"({"do_sample": true, "temperature": 0.6})", 0.6),
        std::pair(R"({"do_sample": true})", 1.0), std::pair(R"({"do_sample": false})", 0.0),
        std::pair(R"({"eos_token_id": 1})", 0.0)}) {
    Recommend(recommended);
    for (const auto& [endpoint, body] : kBodies)
      EXPECT_EQ(TemperatureOverHttp(endpoint, std::string("{") + body), temperature)
          << recommended << body;
  }
}

TEST_F(ApiDefaults, TheRequestsOwnValueWins) {
  EXPECT_EQ(Params(kAll, R"(, "temperature": 0)").temperature, 0);
  EXPECT_EQ(Params(kAll, R"(, "top_k": 0)").top_k, 0);
  EXPECT_EQ(Params(kAll, R"(, "top_p": 1)").top_p, 1);
  EXPECT_EQ(Params(kAll, R"(, "min_p": 0)").min_p, 0);
  EXPECT_EQ(Params(kAll, R"(, "repetition_penalty": 1)").repetition_penalty, 1);
}

TEST_F(ApiDefaults, WhatTheFileHasOutOfRangeIsNoFaultOfTheRequest) {
  for (const char* key : {"top_k", "top_p", "min_p", "temperature", "repetition_penalty"}) {
    const auto parsed = Ask(std::string(R"({"do_sample": true, ")") + key + R"(": -3})", "");
    ASSERT_FALSE(parsed) << key;
    EXPECT_EQ(parsed.error().code, Code::kCorrupt);
    EXPECT_NE(parsed.error().message.find(std::string("generation_config.json: '") + key + "'"),
              std::string::npos)
        << parsed.error().message;
  }
}

// The ranges of the file are the ranges of requests.
TEST_F(ApiDefaults, TheEndsOfTheRangesAreValid) {
  Params(R"({"do_sample": true, "temperature": 100, "top_k": 9223372036854775807, "min_p": 1,
             "top_p": 1e-9, "repetition_penalty": 100})",
         "");
  EXPECT_EQ(Params(R"({"do_sample": true, "top_k": -1, "repetition_penalty": 0.001})", "").top_k,
            0);
}

}  // namespace
}  // namespace latte::request_defaults_test
