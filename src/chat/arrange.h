// Puts a conversation into the order of chat formats. Clients send tool results in any order, with
// the id of the call that each one answers. Most formats write no ids, and models match results to
// calls by their order.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/chat/template_format.h"

namespace latte {

// The text of a result that the conversation lacks.
inline constexpr std::string_view kNoResult = "(no result)";

struct ArrangedChat {
  std::vector<ChatMessage> messages;
  // Which of the given messages each one is. For a result that was added: the message of its call.
  std::vector<size_t> places;
};

// Puts each result (role "tool") directly behind the message with its call, in the order of the
// calls, under the id of its call. A result belongs to
//   the call with its id; to the latest one without a result if several have it;
//   the call whose id has the same letters and digits, as clients replace other characters;
//   the call of its name, or else the first one without a result, if it has no id.
// Several results of one call become one. A call without a result gets kNoResult, unless its
// message is the last one and none of its calls has a result. A result without text is empty.
// Errors: kInvalidArgument for a result that belongs to no call; names its id and the calls that
// have no result.
[[nodiscard]] Result<ArrangedChat> ArrangeToolResults(ChatFormat format,
                                                      std::span<const ChatMessage> messages);

// Kimi's models read and write functions.NAME:NUMBER, and take other ids for a hint to write such
// ones. Calls with other ids get this form, NUMBER being that of the call in the conversation.
// Requires: the order of ArrangeToolResults.
void NameCallsAsKimi(std::vector<ChatMessage>* messages);

// Joins each system message behind a user's message to that message, for formats that open the
// answer directly after the user's text.
void JoinSystemToUsers(ArrangedChat* chat);

}  // namespace latte
