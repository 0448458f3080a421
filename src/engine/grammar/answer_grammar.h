// Begins the grammars of answers.
#pragma once

#include "src/engine/request/request_state.h"

namespace latte {

// Of a request's first output. Requires: the request's grammar is compiled. Errors: of compiling.
[[nodiscard]] Status BeginGrammar(Output& output);

// Of an output that was forked before anything was sampled: it has the masks of this step. Does
// nothing without a grammar. Errors: kExhausted.
[[nodiscard]] Status ForkGrammar(Output& fork);

}  // namespace latte
