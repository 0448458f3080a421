// The patterns that split text before byte pair encoding, by their names in GGUF files
// (tokenizer.ggml.pre). The patterns come from the models' own tokenizers; the approximations of
// other programs would give other ids.
//
// The pattern of deepseek-v3 is the pattern of the model's tokenizer.json. deepseek-llm and kimi-k2
// have the patterns of tests/data/tokenizer/v2_style and of tokenizer_tiktoken.h. The patterns of
// glm4, tekken, youtu and deepseek-coder are copied from programs that quote the models' files.
// According to converters, joyai-llm splits like deepseek-v3, and gigachat and a.x-4.0 like GPT-2.
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
