#include "src/checkpoint/model_files.h"

#include "src/checkpoint/config/gguf/gguf_tokenizer.h"
#include "src/checkpoint/gguf/gguf.h"
#include "src/checkpoint/model_path.h"

namespace latte {

Result<Tokenizer> LoadTokenizer(const std::string& model) {
  if (!IsGgufPath(model)) return Tokenizer::Load(model);
  LATTE_ASSIGN_OR_RETURN(const GgufFiles files, GgufFiles::Open(model));
  return ParseGgufTokenizer(files.metadata());
}

Result<ModelFiles> ModelFiles::Load(const std::string& model) {
  LATTE_ASSIGN_OR_RETURN(std::string dir, ResolveModelPath(model));
  LATTE_ASSIGN_OR_RETURN(ModelConfig config, LoadModelConfigAlone(dir));
  LATTE_ASSIGN_OR_RETURN(Tokenizer tokenizer, LoadTokenizer(dir));
  AddTokenizerEos(tokenizer, config);
  return ModelFiles{std::move(dir), std::move(config), std::move(tokenizer)};
}

}  // namespace latte
