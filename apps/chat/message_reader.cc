#include "apps/chat/message_reader.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kInQuotes = ". ";

// Takes the closing quotes off the end of `text`; false: there are none.
bool TakeQuotes(std::string* text) {
  if (!text->ends_with(kQuotes)) return false;
  text->resize(text->size() - kQuotes.size());
  return true;
}

// A message between quotes as one line of an editor: several lines are a paste there, which needs
// no quotes.
std::string AsLine(const std::string& text) {
  if (text.find('\n') != std::string::npos) return text;
  return fmt::format("{0}{1}{0}", kQuotes, text);
}

}  // namespace

Result<MessageReader::Message> MessageReader::Next() {
  LATTE_ASSIGN_OR_RETURN(Message out, Read());
  if (out.event == LineEvent::kLine)
    lines_->Remember(out.between_quotes ? AsLine(out.text) : out.text);
  return out;
}

Result<MessageReader::Message> MessageReader::Read() {
  Message out;
  LATTE_ASSIGN_OR_RETURN(out.event, lines_->Next(kPrompt, &out.text));
  if (out.event == LineEvent::kPaste) {
    out.event = LineEvent::kLine;
    out.quoted = true;
    return out;
  }
  if (out.event != LineEvent::kLine || !out.text.starts_with(kQuotes)) return out;
  out.quoted = true;
  out.between_quotes = true;
  out.text.erase(0, kQuotes.size());
  while (!TakeQuotes(&out.text)) {
    std::string line;
    LATTE_ASSIGN_OR_RETURN(out.event, lines_->Next(kInQuotes, &line));
    if (out.event == LineEvent::kInterrupted) return out;
    if (out.event == LineEvent::kEnd)
      return InvalidArgument("the input ends inside a message: expected a closing \"\"\"");
    out.text += (out.text.empty() ? "" : "\n") + line;
  }
  if (out.text.ends_with('\n')) out.text.pop_back();
  out.event = LineEvent::kLine;
  return out;
}

}  // namespace latte
