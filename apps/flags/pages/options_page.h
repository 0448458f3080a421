// docs/options.md, made of the lists of fields (latte/fields.h).
#pragma once

#include <string>

namespace latte {

// Markdown: a table of each group of EngineOptions and ServeOptions, of SamplingParams, StopConditions
// and Request, and of the flags of other servers.
std::string OptionsPage();

}  // namespace latte
