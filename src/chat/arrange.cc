#include "src/chat/arrange.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/strings.h"
#include "src/chat/encoders.h"

namespace latte {
namespace {

std::string LettersAndDigits(std::string_view id) {
  std::string out;
  for (const char c : id)
    if (IsLetter(c) || IsDigit(c)) out += c;
  return out;
}

struct MadeCall {
  size_t message = 0;  // the message of the assistant
  std::string_view id;
  std::string_view name;
  std::optional<ChatMessage> result;
  size_t place = 0;  // of the result
};

// The calls under one key, in the order and the groups of the assistant's messages.
class CallsOfKey {
 public:
  void Add(const std::vector<MadeCall>& calls, size_t call) {
    if (rounds_.empty() || calls[rounds_.back().front()].message != calls[call].message)
      rounds_.emplace_back();
    rounds_.back().push_back(call);
    latest_ = call;
  }

  // The first call without a result in the latest message that has one. Constant time on average:
  // a call that has its result is passed over once.
  std::optional<size_t> Open(const std::vector<MadeCall>& calls) {
    while (!rounds_.empty()) {
      std::deque<size_t>& round = rounds_.back();
      const size_t first = round.front();
      if (!calls[first].result) return first;
      if (round.size() > 1)
        round.pop_front();
      else
        rounds_.pop_back();
    }
    return std::nullopt;
  }

  size_t latest() const { return latest_; }

 private:
  std::vector<std::deque<size_t>> rounds_;  // none is empty
  size_t latest_ = 0;
};

class ResultReader {
 public:
  ResultReader(ChatFormat format, std::span<const ChatMessage> messages)
      : format_(format), messages_(messages) {}

  Status Read() {
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i].role == "tool") {
        LATTE_RETURN_IF_ERROR(AddResult(i));
        continue;
      }
      last_ = i;
      if (!messages_[i].tool_calls.empty()) AddCalls(i);
    }
    return {};
  }

  ArrangedChat Take() {
    ArrangedChat out;
    size_t call = 0;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i].role == "tool") continue;
      out.messages.push_back(messages_[i]);
      out.places.push_back(i);
      const size_t end = call + messages_[i].tool_calls.size();
      if (NeedsResults(i, call, end))
        for (size_t k = call; k < end; ++k) TakeResult(&calls_[k], &out);
      call = end;
    }
    return out;
  }

 private:
  using Keys = std::map<std::string, CallsOfKey, std::less<>>;

  void AddCalls(size_t i) {
    by_name_.clear();
    in_order_ = {};
    for (const ToolCall& call : messages_[i].tool_calls) {
      const size_t number = calls_.size();
      calls_.push_back({.message = i, .id = call.id, .name = call.name});
      by_id_[call.id].Add(calls_, number);
      by_letters_[LettersAndDigits(call.id)].Add(calls_, number);
      by_name_[call.name].Add(calls_, number);
      in_order_.Add(calls_, number);
    }
  }

  Status AddResult(size_t i) {
    const ChatMessage& message = messages_[i];
    const std::string id = message.tool_call_id.value_or("");
    const std::optional<size_t> found = id.empty() ? FindWithoutId(message) : FindById(id);
    if (!found) return BadMessage(format_, i, WhyUnknown(id));
    MadeCall& call = calls_[*found];
    const std::string text = message.content.value_or("");
    if (call.result) {
      std::string& joined = *call.result->content;
      if (joined != text) joined += (joined.empty() ? "" : "\n") + text;
      return {};
    }
    call.result = message;
    call.result->content = text;
    call.result->tool_call_id = std::string(call.id);
    call.place = i;
    return {};
  }

  std::optional<size_t> FindById(const std::string& id) {
    const std::string letters = LettersAndDigits(id);
    const auto same = by_id_.find(id);
    if (same != by_id_.end()) {
      const auto open = same->second.Open(calls_);
      return open ? *open : same->second.latest();
    }
    const auto alike = letters.empty() ? by_letters_.end() : by_letters_.find(letters);
    if (alike != by_letters_.end()) {
      const auto open = alike->second.Open(calls_);
      return open ? *open : alike->second.latest();
    }
    const auto nameless = by_id_.find("");  // calls that came without ids
    return nameless != by_id_.end() ? nameless->second.Open(calls_) : std::nullopt;
  }

  // Among the calls of the assistant's last message that has some.
  std::optional<size_t> FindWithoutId(const ChatMessage& message) {
    if (const auto named = by_name_.find(message.name.value_or("")); named != by_name_.end())
      if (const auto open = named->second.Open(calls_)) return open;
    return in_order_.Open(calls_);
  }

  std::string WhyUnknown(const std::string& id) const {
    constexpr size_t kListed = 8;
    std::vector<std::string> open;
    for (const MadeCall& call : calls_)
      if (!call.result && open.size() < kListed) open.push_back(fmt::format("'{}'", call.id));
    const std::string which =
        id.empty() ? "has no tool_call_id, and every call before it has a result"
                   : fmt::format("answers the call '{}', but no call before it has this id", id);
    return fmt::format(
        "this message of role 'tool' {}; calls without a result: {}; send the id of the call, or "
        "leave the result out",
        which, open.empty() ? "none" : fmt::format("{}", fmt::join(open, ", ")));
  }

  bool NeedsResults(size_t i, size_t begin, size_t end) const {
    if (i < last_) return true;
    return std::any_of(calls_.begin() + static_cast<int64_t>(begin),
                       calls_.begin() + static_cast<int64_t>(end),
                       [](const MadeCall& call) { return call.result.has_value(); });
  }

  static void TakeResult(MadeCall* call, ArrangedChat* out) {
    if (!call->result) {
      call->place = call->message;
      call->result = ChatMessage{
          .role = "tool", .content = std::string(kNoResult), .tool_call_id = std::string(call->id)};
    }
    out->messages.push_back(*std::move(call->result));
    out->places.push_back(call->place);
  }

  ChatFormat format_;
  std::span<const ChatMessage> messages_;
  std::vector<MadeCall> calls_;
  size_t last_ = 0;  // the last message that is no result
  Keys by_id_;
  Keys by_letters_;
  Keys by_name_;         // of the last message with calls
  CallsOfKey in_order_;  // the same, all of them
};

bool IsKimisId(std::string_view id, std::string_view name) {
  constexpr std::string_view kBefore = "functions.";
  if (!id.starts_with(kBefore)) return false;
  id.remove_prefix(kBefore.size());
  if (!id.starts_with(name)) return false;
  id.remove_prefix(name.size());
  return id.starts_with(':') && IsDigits(id.substr(1));
}

}  // namespace

Result<ArrangedChat> ArrangeToolResults(ChatFormat format, std::span<const ChatMessage> messages) {
  ResultReader reader(format, messages);
  LATTE_RETURN_IF_ERROR(reader.Read());
  return reader.Take();
}

void NameCallsAsKimi(std::vector<ChatMessage>* messages) {
  size_t number = 0;
  for (size_t i = 0; i < messages->size(); ++i) {
    std::vector<ToolCall>& calls = (*messages)[i].tool_calls;
    for (size_t k = 0; k < calls.size(); ++k, ++number) {
      if (IsKimisId(calls[k].id, calls[k].name)) continue;
      calls[k].id = fmt::format("functions.{}:{}", calls[k].name, number);
      const size_t result = i + 1 + k;
      if (result < messages->size() && (*messages)[result].role == "tool")
        (*messages)[result].tool_call_id = calls[k].id;
    }
  }
}

void JoinSystemToUsers(ArrangedChat* chat) {
  ArrangedChat out;
  for (size_t i = 0; i < chat->messages.size(); ++i) {
    ChatMessage& message = chat->messages[i];
    if (message.role == "system" && !out.messages.empty() && out.messages.back().role == "user") {
      std::optional<std::string>& question = out.messages.back().content;
      if (!question) question = "";
      if (message.content && !message.content->empty()) *question += "\n\n" + *message.content;
      continue;
    }
    out.messages.push_back(std::move(message));
    out.places.push_back(chat->places[i]);
  }
  *chat = std::move(out);
}

}  // namespace latte
