// docs/options.md, made of the lists of fields (latte/fields.h).
#pragma once

#include <string>

namespace latte {

// Markdown: a table of each group of EngineOptions, of SamplingParams, StopConditions and Request.
std::string OptionsPage();

}  // namespace latte
