// Judges texts of another engine with a story grammar, like the skill "stories".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "lab/eval/eval.h"
#include "lab/eval/story_grammar.h"
#include "src/base/json_out_fwd.h"

namespace latte {

struct RefusedText {
  int64_t line = 0;      // counted from 1
  StoryVerdict verdict;  // its bytes are counted without BOS and EOS
};

struct JudgedTexts {
  SkillReport report;
  std::vector<RefusedText> refused;  // the first 1,000
};

// `lines`: {"text": …} per line, at most 1 MiB each; other keys and blank lines are ignored.
// `where`: names the lines in messages. `marks`: the texts of BOS and EOS, which are removed from
// both ends of a text. Errors: kInvalidArgument without a text; kCorrupt naming the line and what
// is wrong with it.
[[nodiscard]] Result<JudgedTexts> JudgeTexts(const StoryGrammar& grammar, std::string_view lines,
                                             const std::string& where,
                                             std::span<const std::string> marks);

// {"stories": {"items", "passed", "count", "share", "refused": [{"line", "byte", "reason"}]}}
JsonOut JudgedJson(const JudgedTexts& judged);

// The line of EvalTable, then the first refused texts.
std::string JudgedTable(const JudgedTexts& judged);

}  // namespace latte
