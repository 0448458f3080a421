// Begins the grammars of answers.
#pragma once

#include "src/engine/request/request_state.h"

namespace latte {

// Puts a request's first output at the beginning of its grammar. Requires: it is compiled. Errors:
// of compiling.
[[nodiscard]] Status BeginGrammar(Output& output);

// The same for an output that was forked before anything was sampled: it has the masks of this
// step. Does nothing without a grammar. Requires: they are ready.
void ForkGrammar(Output& fork);

}  // namespace latte
