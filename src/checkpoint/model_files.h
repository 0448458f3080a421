// The small files of a model's folder. A program loads each of them once, here, and passes them to
// all users.
#pragma once

#include <string>

#include "src/checkpoint/config/model_config.h"
#include "src/text/tokenizer.h"

namespace latte {

// The tokenizer of a model's folder, or of the metadata of a GGUF file.
// Errors: of Tokenizer::Load, GgufFiles::Open and ParseGgufTokenizer.
[[nodiscard]] Result<Tokenizer> LoadTokenizer(const std::string& model);

struct ModelFiles {
  std::string dir;  // the folder, or the GGUF file
  ModelConfig config;
  Tokenizer tokenizer;  // with the chat template

  // Errors: of ResolveModelPath, LoadModelConfig and LoadTokenizer.
  [[nodiscard]] static Result<ModelFiles> Load(const std::string& model);
};

}  // namespace latte
