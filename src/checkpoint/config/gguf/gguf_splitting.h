// How text is split before byte pair encoding, by the name that GGUF files give a way to split
// (tokenizer.ggml.pre). The patterns are those of the models' own tokenizers, not the approximations
// of other programs, so that the ids are the same as from a model's folder.
//
// Patterns of files at hand: deepseek-v3, deepseek-llm, kimi-k2. As others state the models' own:
// glm4, tekken, youtu, deepseek-coder. As converters tell that tokenizers are alike: joyai-llm splits
// like deepseek-v3, gigachat and a.x-4.0 like GPT-2.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace latte {

struct GgufSplitting {
  std::string_view name;
  std::span<const std::string_view> patterns;  // each splits the pieces that the one before leaves
  bool ignore_merges = false;                  // a piece that is a token needs no merges
  bool is_tiktoken = false;  // as tokenizer_tiktoken.h splits and merges; has no patterns here
  bool adds_bos = false;     // prompts begin with BOS if the file does not say whether they do
};

// nullptr if the name is not known.
const GgufSplitting* FindGgufSplitting(std::string_view name);

// All names: "deepseek-llm, deepseek-coder, …".
std::string GgufSplittingNames();

}  // namespace latte
