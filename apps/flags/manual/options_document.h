// docs/options.md, from the lists of fields (latte/fields.h).
#pragma once

#include <string>

#include "latte/fields.h"

namespace latte {

// Markdown: a table of each group of EngineOptions and ServeOptions, of SamplingParams,
// StopConditions and Request, and of the flags of other servers.
std::string OptionsDocument();

std::string ValuesText(const Field& field);  // "[0, 100]; at most 16": what a field accepts

}  // namespace latte
