// The syntax of function calls in the answers of each chat format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/chat/template_format.h"

namespace latte {

enum class ToolFormat : uint8_t {
  kDeepseekV3,   // DeepSeek-V3, R1: a type, a name, JSON in a code fence
  kDeepseekV31,  // DeepSeek-V3.1: a name, JSON
  kDeepseekV32,  // DeepSeek-V3.2: XML-like tags with the token ｜DSML｜
  kKimiK2,       // Kimi-K2, K2.5: an id that contains the name, JSON
  kGlm,          // GLM-4.7, GLM-5: XML-like tags
};

// "deepseek_v3", "deepseek_v3.1", "deepseek_v3.2", "kimi_k2", "glm".
std::string_view Name(ToolFormat format);
// nullopt: no format has this name.
std::optional<ToolFormat> ToolFormatOf(std::string_view name);

// The format in which a model calls functions. `chat_template`: of the checkpoint; its text says
// which marks the model was trained on. Empty: the format follows from `format`.
// nullopt: Latte cannot read this model's calls.
std::optional<ToolFormat> FindToolFormat(ChatFormat format, std::string_view chat_template);

// A text that ends a part of a call.
struct ToolMark {
  std::string_view text;
  bool consumed = true;  // false: it also begins what follows
};

// The marks of a format. A call is
//   call_begin NAME name_end ARGUMENTS call_end
// in a block, if the format has blocks. ARGUMENTS is JSON text or, if the format has parameters,
// any number of
//   parameter_begin KEY key_end VALUE value_end
// Several marks for the same place: the one that begins first counts, then the longest. The first
// of a list is the one that the format defines; models also write the others.
struct ToolSyntax {
  std::string_view name;
  std::span<const std::string_view> block_begins;
  std::span<const std::string_view> block_ends;  // none: calls stand without blocks
  std::string_view call_begin;
  std::span<const ToolMark> name_ends;
  std::span<const ToolMark> call_ends;
  std::string_view parameter_begin = {};  // empty: ARGUMENTS is JSON text
  std::string_view key_end = {};
  std::string_view value_end = {};
};

const ToolSyntax& SyntaxOf(ToolFormat format);

// The marks that begin calls: a block or a call without one. A model may begin a call without
// ending its reasoning first.
std::span<const std::string_view> CallOpenings(ToolFormat format);

}  // namespace latte
