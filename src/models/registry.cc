#include "src/models/registry.h"

#include "src/models/deepseek.h"

namespace latte {

Result<std::unique_ptr<Model>> LoadModel(const std::string& dir, const ModelOptions& options) {
  LATTE_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(dir));
  LATTE_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(dir));
  return LoadModel(dir, config, std::move(checkpoint), options);
}

Result<std::unique_ptr<Model>> LoadModel(const std::string& dir, const ModelConfig& config,
                                         Checkpoint checkpoint, const ModelOptions& options) {
  // Every architecture that LoadModelConfig accepts is built from the same layers; their
  // differences are data.
  LATTE_ASSIGN_OR_RETURN(
      auto model,
      DeepseekModel::Load(config, std::move(checkpoint), options).map_error([&dir](Error error) {
        error.message = dir + ": " + error.message;
        return error;
      }));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace latte
