// Patterns of tokenizer.json are written for Oniguruma in Ruby's syntax; Latte matches with PCRE2.
// The two agree on most constructs but not on all: this file rewrites what can be said in both and
// refuses the rest by name, so that no pattern quietly means something else.
//
// What is rewritten: \s (PCRE2 counts U+180E), scripts (PCRE2 looks at Script_Extensions), set
// intersection `[a&&[^b]]`, \v and \uHHHH, and general categories and scripts of the code points
// that Unicode 15 to 16 added (PCRE2 10.42 knows Unicode 14, `tokenizers` knows 16).
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

// The PCRE2 pattern (for UTF, UCP and multi-line mode) with the same matches.
// Errors: kUnsupported naming the construct and its byte offset.
[[nodiscard]] Result<std::string> TranslatePattern(std::string_view pattern);

}  // namespace latte
