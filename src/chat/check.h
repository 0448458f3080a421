// Checks that a prompt contains all parts of a conversation. Some templates silently leave out a
// message whose role they do not know. The check compares prompts only, so it works for templates
// and encoders alike.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/chat/template_format.h"

namespace latte {

enum class MessagePart { kText, kCalls, kName };

// A part of the conversation that a format leaves out of the prompt.
struct Unshown {
  size_t message = 0;
  MessagePart what = MessagePart::kText;
  bool operator==(const Unshown&) const = default;
};

// Renders the conversation once more with a unique mark after every text, in every call and after
// every name. A part whose mark is missing from the result was left out. White space is not
// checked, and reasoning is not checked because formats leave out earlier reasoning by design. If
// the format refuses the marked conversation, its prompt is searched for the texts instead.
// `prompt`: the result of Render for the same messages and options.
// Cost: one rendering.
std::vector<Unshown> FindUnshown(const ChatRenderer& renderer,
                                 std::span<const ChatMessage> messages, const ChatOptions& options,
                                 std::span<const TextPiece> prompt);

}  // namespace latte
