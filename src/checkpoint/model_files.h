// The small files of a model's folder, each read once: a program loads them here and hands them on to
// everything that needs them.
#pragma once

#include <string>

#include "src/checkpoint/config/model_config.h"
#include "src/text/tokenizer.h"

namespace latte {

struct ModelFiles {
  std::string dir;
  ModelConfig config;
  Tokenizer tokenizer;  // with the chat template

  // Errors: of ResolveModelPath, LoadModelConfig and Tokenizer::Load.
  [[nodiscard]] static Result<ModelFiles> Load(const std::string& model);
};

}  // namespace latte
