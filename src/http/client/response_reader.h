// Reads one response of HTTP/1.1 from bytes as they arrive. Includes Boost; for files of src/http
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/http/message.h"

namespace latte {

struct ResponseLimits {
  // The head counts together with the heads of interim responses before it. The same limit holds
  // for a chunk's size with its extensions, and for trailers.
  int64_t max_head_bytes = 64 << 10;
  int64_t max_body_bytes = 64 << 20;
};

// Interim responses (1xx) are skipped. Thread-compatible.
class ResponseReader {
 public:
  struct Events {
    std::function<void(HttpResponse head)> on_head;  // its body is empty
    std::function<void(std::string_view piece)> on_body;
  };

  // no_body: the answer to HEAD or CONNECT.
  ResponseReader(const ResponseLimits& limits, bool no_body, Events events);
  ~ResponseReader();

  // Errors: kCorrupt for bytes that are no response, or that are beyond the limits.
  [[nodiscard]] Status Add(std::string_view bytes);
  // The connection has ended. Errors: kCorrupt if the response is not complete.
  [[nodiscard]] Status End();

  bool begun() const { return begun_; }  // a byte has arrived
  bool done() const;
  // The connection may serve another request. Requires: done().
  bool keep_alive() const;
  bool has_rest() const { return !waiting_.empty(); }  // bytes behind the response, if done()
  // Only the end of the connection ends the body.
  bool ends_with_connection() const;

 private:
  class Parser;

  void StartParser();

  ResponseLimits limits_;
  bool no_body_;
  Events events_;
  std::unique_ptr<Parser> parser_;
  size_t head_bytes_ = 0;  // that the parsers of heads have consumed
  std::string waiting_;    // bytes that the parser has not consumed
  bool begun_ = false;
};

}  // namespace latte
