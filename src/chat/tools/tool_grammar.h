// Calls of functions as a grammar, for answers that must call one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/chat/tools/tool_syntax.h"
#include "src/text/tokenizer.h"

namespace latte {

struct ToolFunction {
  std::string name;
  std::string parameters;  // a JSON schema; empty: any object
  bool strict = false;     // arguments that cannot be made to match the schema are an error
};

// What follows are parts of the syntax kStructuralTag (src/grammar/grammar.h).

// `text` of a chat format: its added tokens as tokens, the rest as text.
JsonOut FormatText(std::string_view text, const Tokenizer& tokenizer);

// Any text up to `mark` of a chat format, and the mark.
JsonOut TextUntil(std::string_view mark, const Tokenizer& tokenizer);

JsonOut Sequence(std::vector<JsonOut> elements);
JsonOut Choice(std::vector<JsonOut> elements);
JsonOut Optional(JsonOut content);

// At least one call of `functions`, as the format writes it; without `parallel`, exactly one.
// Arguments match the schemas. Requires: at least one function. Errors: of RulesOf, for a strict
// function; the arguments of others are then any object.
[[nodiscard]] Result<JsonOut> CallsFormat(ToolFormat format,
                                          std::span<const ToolFunction> functions, bool parallel,
                                          const Tokenizer& tokenizer);

// Any text without the marks that begin calls.
JsonOut TextWithoutCalls(ToolFormat format, const Tokenizer& tokenizer);

}  // namespace latte
