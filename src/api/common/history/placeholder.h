// Text that replaces the parts of a conversation that the model cannot read: media, and actions of
// other services. A history keeps such parts for ever, so a server that refused them would end the
// conversation.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

// Whether a part of this type is an image, sound, video or file, in any of the APIs.
bool IsMedia(std::string_view type);

// "(image left out: the model reads text)" for media; else the type, and the text that the part has
// under names such as query, title, url and output: "(web_search_call: weather in Paris)".
std::string Placeholder(std::string_view type, const Json& part);

// The text alone, lines in a fixed order; empty if there is none.
std::string ReadableText(const Json& part);

// The refusal of a part of a message that is new: its sender can still send something else.
tl::unexpected<Error> NoSuchPart(const Json& part, std::string_view type, std::string_view where);

}  // namespace latte
