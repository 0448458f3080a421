#include "src/checkpoint/model_files.h"

#include "src/checkpoint/model_path.h"

namespace latte {

Result<ModelFiles> ModelFiles::Load(const std::string& model) {
  LATTE_ASSIGN_OR_RETURN(std::string dir, ResolveModelPath(model));
  LATTE_ASSIGN_OR_RETURN(ModelConfig config, LoadModelConfigAlone(dir));
  LATTE_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(dir));
  AddTokenizerEos(tokenizer, config);
  return ModelFiles{std::move(dir), std::move(config), std::move(tokenizer)};
}

}  // namespace latte
