// Translates patterns of tokenizer.json, which are written for Oniguruma in Ruby's syntax, to
// PCRE2. The two agree on most constructs, but not on all. This file rewrites the constructs that
// both can express and refuses the others by name, so no pattern silently changes its meaning.
//
// Rewritten: \s (PCRE2 includes U+180E), scripts (PCRE2 uses Script_Extensions), set intersection
// `[a&&[^b]]`, \v and \uHHHH, and general categories and scripts of the code points that Unicode 15
// to 16 added (PCRE2 10.42 knows Unicode 14, `tokenizers` knows 16).
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

// The PCRE2 pattern (for UTF, UCP and multi-line mode) with the same matches.
// Errors: kUnsupported naming the construct and its byte offset.
[[nodiscard]] Result<std::string> TranslatePattern(std::string_view pattern);

}  // namespace latte
