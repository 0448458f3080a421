// The text of a response before its body.
#pragma once

#include <string>
#include <string_view>

#include "src/http/message.h"

namespace latte {

// `framing`: the header line that delimits the body, with its CRLF; may be empty.
std::string ResponseHead(const HttpResponse& response, std::string_view framing, bool close);

}  // namespace latte
