// Server-sent events, the format text/event-stream of the HTML standard, read from bytes as they
// arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

struct SseEvent {
  std::string type = "message";
  std::string data;     // the lines of the event, with '\n' between them
  std::string last_id;  // of this event or the last one before that has one
};

// Thread-compatible. However the bytes are cut into pieces, the events are the same. An event that
// the stream does not finish with an empty line is dropped, as the standard says.
class SseReader {
 public:
  // `max_event_bytes` bounds a line, and the data of an event.
  explicit SseReader(size_t max_event_bytes = size_t{8} << 20)
      : max_event_bytes_(max_event_bytes) {}

  using OnEvent = std::function<void(const SseEvent& event)>;

  // Calls `on_event` for every event that `bytes` finishes. Errors: kCorrupt for a line or an event
  // that is too long; the reader must not be used afterwards.
  [[nodiscard]] Status Add(std::string_view bytes, const OnEvent& on_event);

  int64_t comments() const { return comments_; }

 private:
  [[nodiscard]] Status TakeLine(std::string_view line, const OnEvent& on_event);
  void TakeField(std::string_view name, std::string_view value);
  void Dispatch(const OnEvent& on_event);
  tl::unexpected<Error> TooLong(std::string_view what) const;

  size_t max_event_bytes_;
  std::string line_;           // begun and not finished
  bool after_return_ = false;  // the last byte was '\r': a '\n' belongs to it
  bool at_beginning_ = true;   // of the stream, where a byte-order mark is skipped
  bool has_data_ = false;
  SseEvent event_;
  int64_t comments_ = 0;
};

}  // namespace latte
