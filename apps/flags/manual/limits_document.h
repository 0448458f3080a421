// docs/limits.md: every limit, its effect, and the test that shows it.
#pragma once

#include <string>

namespace latte {

// Markdown. Defaults of options come from the lists of fields (latte/fields.h).
std::string LimitsDocument();

}  // namespace latte
