// The whole answer of /v1/chat/completions and /v1/completions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/api/common/answer.h"
#include "src/base/json_out_fwd.h"
#include "src/text/tokenizer.h"

namespace latte {

JsonOut UsageJson(ApiEndpoint endpoint, const ApiUsage& usage);

// `id` is unique among answers; `created` is in seconds since 1970. Requires: answer.done(), no
// error.
std::string CompletionBody(const ApiAnswer& answer, const Tokenizer& tokenizer, std::string_view id,
                           int64_t created);

}  // namespace latte
