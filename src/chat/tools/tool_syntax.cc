#include "src/chat/tools/tool_syntax.h"

#include <array>

namespace latte {
namespace {

using Text = std::string_view;
template <size_t n>
using Texts = std::array<Text, n>;
template <size_t n>
using Marks = std::array<ToolMark, n>;

// DeepSeek-V3 to V3.1. Some answers lack the end of a call or begin one without a block.
constexpr Text kCallsBegin = "<｜tool▁calls▁begin｜>";
constexpr Text kCallsEnd = "<｜tool▁calls▁end｜>";
constexpr Text kCallBegin = "<｜tool▁call▁begin｜>";
constexpr Text kCallEnd = "<｜tool▁call▁end｜>";
constexpr Texts<1> kDeepseekBlocks = {kCallsBegin};
constexpr Texts<1> kDeepseekBlockEnds = {kCallsEnd};
constexpr Texts<2> kDeepseekOpenings = {kCallsBegin, kCallBegin};
constexpr Marks<2> kV3NameEnds = {{{"\n```json\n"}, {kCallEnd, false}}};
constexpr Marks<6> kV3CallEnds = {{{"\n```<｜tool▁call▁end｜>"},
                                   {"```<｜tool▁call▁end｜>"},
                                   {kCallEnd},
                                   {"\n```<｜tool▁calls▁end｜>"},
                                   {kCallsEnd, false},
                                   {kCallBegin, false}}};
constexpr ToolSyntax kV3 = {.name = "deepseek_v3",
                            .block_begins = kDeepseekBlocks,
                            .block_ends = kDeepseekBlockEnds,
                            .call_begin = kCallBegin,
                            .name_ends = kV3NameEnds,
                            .call_ends = kV3CallEnds};

constexpr Marks<2> kV31NameEnds = {{{"<｜tool▁sep｜>"}, {kCallEnd, false}}};
constexpr Marks<3> kV31CallEnds = {{{kCallEnd}, {kCallsEnd, false}, {kCallBegin, false}}};
constexpr ToolSyntax kV31 = {.name = "deepseek_v3.1",
                             .block_begins = kDeepseekBlocks,
                             .block_ends = kDeepseekBlockEnds,
                             .call_begin = kCallBegin,
                             .name_ends = kV31NameEnds,
                             .call_ends = kV31CallEnds};

// The encoder writes two line feeds between the text and the calls.
constexpr Texts<2> kDsmlBlocks = {"\n\n<｜DSML｜function_calls>", "<｜DSML｜function_calls>"};
constexpr Texts<1> kDsmlBlockEnds = {"</｜DSML｜function_calls>"};
constexpr Texts<3> kDsmlOpenings = {kDsmlBlocks[0], kDsmlBlocks[1], "<｜DSML｜invoke name=\""};
constexpr Marks<2> kDsmlNameEnds = {{{"\">"}, {"\n", false}}};
constexpr Marks<2> kDsmlCallEnds = {{{"\n</｜DSML｜invoke>"}, {"</｜DSML｜invoke>"}}};
constexpr ToolSyntax kV32 = {.name = "deepseek_v3.2",
                             .block_begins = kDsmlBlocks,
                             .block_ends = kDsmlBlockEnds,
                             .call_begin = "<｜DSML｜invoke name=\"",
                             .name_ends = kDsmlNameEnds,
                             .call_ends = kDsmlCallEnds,
                             .parameter_begin = "<｜DSML｜parameter name=\"",
                             .key_end = "\">",
                             .value_end = "</｜DSML｜parameter>"};

// Some answers have the marks of the section in the singular.
constexpr Texts<2> kKimiBlocks = {"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"};
constexpr Texts<2> kKimiBlockEnds = {"<|tool_calls_section_end|>", "<|tool_call_section_end|>"};
constexpr Texts<3> kKimiOpenings = {kKimiBlocks[0], kKimiBlocks[1], "<|tool_call_begin|>"};
constexpr Marks<2> kKimiNameEnds = {
    {{"<|tool_call_argument_begin|>"}, {"<|tool_call_end|>", false}}};
constexpr Marks<4> kKimiCallEnds = {{{"<|tool_call_end|>"},
                                     {kKimiBlockEnds[0], false},
                                     {kKimiBlockEnds[1], false},
                                     {"<|tool_call_begin|>", false}}};
constexpr ToolSyntax kKimi = {.name = "kimi_k2",
                              .block_begins = kKimiBlocks,
                              .block_ends = kKimiBlockEnds,
                              .call_begin = "<|tool_call_begin|>",
                              .name_ends = kKimiNameEnds,
                              .call_ends = kKimiCallEnds};

// The template writes a line feed between the text and a call; GLM-4.7 and later write none inside.
constexpr Texts<2> kGlmOpenings = {"\n<tool_call>", "<tool_call>"};
constexpr Marks<3> kGlmNameEnds = {{{"\n"}, {"<arg_key>", false}, {"</tool_call>", false}}};
constexpr Marks<1> kGlmCallEnds = {{{"</tool_call>"}}};
constexpr ToolSyntax kGlmSyntax = {.name = "glm",
                                   .block_begins = {},
                                   .block_ends = {},
                                   .call_begin = "<tool_call>",
                                   .name_ends = kGlmNameEnds,
                                   .call_ends = kGlmCallEnds,
                                   .parameter_begin = "<arg_key>",
                                   .key_end = "<arg_value>",
                                   .value_end = "</arg_value>"};

}  // namespace

const ToolSyntax& SyntaxOf(ToolFormat format) {
  switch (format) {
    case ToolFormat::kDeepseekV3:
      return kV3;
    case ToolFormat::kDeepseekV31:
      return kV31;
    case ToolFormat::kDeepseekV32:
      return kV32;
    case ToolFormat::kKimiK2:
      return kKimi;
    case ToolFormat::kGlm:
      break;
  }
  return kGlmSyntax;
}

std::string_view Name(ToolFormat format) { return SyntaxOf(format).name; }

std::optional<ToolFormat> ToolFormatOf(std::string_view name) {
  for (const ToolFormat format : {ToolFormat::kDeepseekV3, ToolFormat::kDeepseekV31,
                                  ToolFormat::kDeepseekV32, ToolFormat::kKimiK2, ToolFormat::kGlm})
    if (Name(format) == name) return format;
  return std::nullopt;
}

std::span<const std::string_view> CallOpenings(ToolFormat format) {
  switch (format) {
    case ToolFormat::kDeepseekV3:
    case ToolFormat::kDeepseekV31:
      return kDeepseekOpenings;
    case ToolFormat::kDeepseekV32:
      return kDsmlOpenings;
    case ToolFormat::kKimiK2:
      return kKimiOpenings;
    case ToolFormat::kGlm:
      break;
  }
  return kGlmOpenings;
}

std::optional<ToolFormat> FindToolFormat(ChatFormat format, std::string_view chat_template) {
  const auto has = [&](std::string_view text) {
    return chat_template.find(text) != std::string_view::npos;
  };
  switch (format) {
    case ChatFormat::kTemplate:
      if (has("｜DSML｜")) return ToolFormat::kDeepseekV32;
      if (has(kCallsBegin))
        return has("```json") ? ToolFormat::kDeepseekV3 : ToolFormat::kDeepseekV31;
      if (has("<|tool_calls_section_begin|>")) return ToolFormat::kKimiK2;
      if (has("<arg_key>")) return ToolFormat::kGlm;
      return std::nullopt;
    case ChatFormat::kDeepseekV25:
    case ChatFormat::kDeepseekV3:
    case ChatFormat::kDeepseekR1:
      return ToolFormat::kDeepseekV3;
    case ChatFormat::kDeepseekV31:
      return ToolFormat::kDeepseekV31;
    case ChatFormat::kDeepseekV32:
      return ToolFormat::kDeepseekV32;
    case ChatFormat::kKimiK2:
      return ToolFormat::kKimiK2;
    case ChatFormat::kDeepseekV2:
      break;
  }
  return std::nullopt;
}

}  // namespace latte
