// Checks of a grammar before xgrammar sees it.
#pragma once

#include <string_view>

#include "latte/status.h"

#include "src/grammar/grammar.h"

namespace latte {

// Bounds the size of the text and how deeply its brackets nest: xgrammar's readers recurse.
// Errors: kInvalidArgument.
[[nodiscard]] Status CheckGrammarSize(const Grammar& grammar);

}  // namespace latte
