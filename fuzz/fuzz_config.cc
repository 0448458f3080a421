// config.json: a config that parses must have sizes that later arithmetic can rely on.
#include "fuzz/fuzz_input.h"
#include "src/base/json.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/config/model_size.h"
#include "src/checkpoint/expected_tensors.h"

namespace latte::fuzz {
namespace {

constexpr int64_t kMostTensors = 2'000;  // more tensors only take longer

void CheckSizes(const ModelConfig& config) {
  const ParamCount all = CountParams(config);
  const ParamCount active = CountActiveParams(config);
  Require(all.total() > 0 && all.mtp >= 0, "a model has parameters");
  Require(active.total() > 0 && active.total() <= all.total(), "active parameters are some of all");
  const CacheBytes cache = CacheBytesPerToken(config, DType::kF32);
  Require(cache.mla > 0 && cache.mha > 0 && cache.gqa8 > 0, "a token takes room in the cache");
  Require(config.moe.experts == 0 || config.moe.chosen <= config.moe.experts,
          "chosen experts exist");
  Require(config.rope.theta > 1 && config.norm_eps > 0, "divisors are not zero");
}

void CheckTensorList(const ModelConfig& config) {
  if (config.layers * (15 + 3 * config.moe.experts) > kMostTensors) return;
  int64_t elements = 0;
  for (const ExpectedTensor& tensor : ExpectedTensors(config)) {
    int64_t product = 1;
    for (const int64_t dim : tensor.shape) {
      Require(dim > 0, "no dimension is empty");
      product *= dim;
    }
    if (tensor.required) elements += product;
  }
  Require(elements == CountParams(config).total(), "the count is that of the tensors");
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  const Result<Json> json = Json::Parse(fuzz::AsText(data, size), "config.json");
  if (!json) return 0;
  const Result<ModelConfig> config = ParseModelConfig(*json);
  if (!config) {
    fuzz::Require(config.error().message.find("config.json") == 0, "a refusal names the file");
    return 0;
  }
  fuzz::CheckSizes(*config);
  fuzz::CheckTensorList(*config);
  return 0;
}
