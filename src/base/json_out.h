// JSON that we write. Included by the files that build or take apart a document; headers include
// json_out_fwd.h.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"

namespace latte {

// Compact text of `value`; invalid UTF-8 in strings becomes U+FFFD.
std::string Dump(const JsonOut& value, int indent = -1);

// A document that is to be changed and written again, keys in their order. Errors: of Json::Parse.
[[nodiscard]] Result<JsonOut> ParseToEdit(std::string_view text, const std::string& where);

}  // namespace latte
