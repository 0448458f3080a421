#include "src/http/client/sse.h"

#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Status SseReader::Add(std::string_view bytes, const OnEvent& on_event) {
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > max_event_bytes_) return TooLong("a line");
    if (end == std::string_view::npos) {
      line_ += piece;
      return {};
    }
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (line_.empty()) {
      LATTE_RETURN_IF_ERROR(TakeLine(piece, on_event));
    } else {
      line_ += piece;
      LATTE_RETURN_IF_ERROR(TakeLine(line_, on_event));
      line_.clear();
    }
  }
  return {};
}

Status SseReader::TakeLine(std::string_view line, const OnEvent& on_event) {
  if (std::exchange(at_beginning_, false) && line.starts_with(kByteOrderMark))
    line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) {
    Dispatch(on_event);
    return {};
  }
  if (line.front() == ':') {
    ++comments_;
    return {};
  }
  const size_t colon = line.find(':');
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (event_.data.size() + value.size() > max_event_bytes_) return TooLong("an event");
  TakeField(line.substr(0, colon), value);
  return {};
}

void SseReader::TakeField(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  } else if (name == "event") {
    event_.type = value;
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    event_.last_id = value;
  }  // "retry" is for readers that connect again; others are ignored
}

void SseReader::Dispatch(const OnEvent& on_event) {
  if (has_data_) {
    if (event_.type.empty()) event_.type = "message";
    on_event(event_);
  }
  has_data_ = false;
  event_.data.clear();
  event_.type = "message";
}

tl::unexpected<Error> SseReader::TooLong(std::string_view what) const {
  return Corrupt(fmt::format("event stream: expected {} of at most {} bytes, found more", what,
                             max_event_bytes_));
}

}  // namespace latte
