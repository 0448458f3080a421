// Judges texts of another engine with a story grammar, like the skill "stories".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "lab/eval/eval.h"
#include "lab/eval/story_grammar.h"
#include "src/base/json_out_fwd.h"
#include "src/text/tokenizer_json.h"

namespace latte {

struct RefusedText {
  int64_t line = 0;      // counted from 1
  StoryVerdict verdict;  // its bytes are counted without BOS and EOS
};

struct JudgedTexts {
  SkillReport report;
  std::vector<RefusedText> refused;  // the first 1,000
};

// `lines`: {"text": …} per line; other keys are ignored, and so are blank lines. `where` names the
// lines in messages. The spellings of `tokens`' BOS and EOS are removed from both ends of a text.
// Errors: kInvalidArgument without a text; kCorrupt naming the line and what is wrong with it.
[[nodiscard]] Result<JudgedTexts> JudgeTexts(const StoryGrammar& grammar, std::string_view lines,
                                             const std::string& where,
                                             const TokenizerConfig& tokens);

// {"stories": {"items", "passed", "count", "share", "refused": [{"line", "byte", "reason"}]}}
JsonOut JudgedJson(const JudgedTexts& judged);

// The line of EvalTable, then the first refused texts.
std::string JudgedTable(const JudgedTexts& judged);

}  // namespace latte
