// Whether a prompt has all that a conversation says. Templates come in every quality, and many
// leave out a message whose role they do not know, without a word. Looks at prompts only from
// outside, so that one check serves templates and encoders alike.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/chat/template_format.h"

namespace latte {

// What a format leaves out of a prompt.
struct Unshown {
  enum class What { kText, kCalls, kName };
  size_t message = 0;
  What what = What::kText;
  bool operator==(const Unshown&) const = default;
};

// Renders the conversation once more, with a mark of its own behind every text, in every call and
// behind every name: what comes out without its mark was left out. White space says nothing, and
// reasoning is not looked for, because formats leave out that of earlier turns by design. A
// conversation that the format refuses with marks is searched for its texts instead.
// `prompt`: what Render gave for the same messages and options. Cost: one rendering.
std::vector<Unshown> FindUnshown(const ChatRenderer& renderer,
                                 std::span<const ChatMessage> messages, const ChatOptions& options,
                                 std::span<const ChatPiece> prompt);

}  // namespace latte
