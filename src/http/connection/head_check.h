// Checks the bytes of a request's head before a parser sees them. It refuses anything that RFC 9112
// forbids or that servers and proxies interpret differently (request smuggling). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/http/message.h"

namespace latte {

struct HeadLimits {
  size_t bytes = 32 << 10;
  size_t fields = 100;
  size_t target = 8 << 10;
};

// Why a request is refused by HTTP itself.
struct HeadError {
  int status = 400;
  std::string message;  // one sentence
};

// How far a head has arrived.
struct HeadScan {
  // Bytes of the head with its empty line; 0: it is not complete.
  size_t end = 0;
  std::optional<HeadError> error;
};

// Looks at the bytes that have arrived so far. Refuses early what can become no head: a TLS hello,
// a line that ends without CR, too many bytes. `scanned`: bytes that an earlier call has seen.
HeadScan ScanHead(std::string_view bytes, size_t scanned, const HeadLimits& limits);

// How the body of a request is delimited.
struct BodyFraming {
  bool chunked = false;
  uint64_t length = 0;  // unless chunked
  bool expects_continue = false;
  bool keep_alive = true;
  bool is_http_1_0 = false;
};

// Reads a complete head: fills method, path, query and fields of `request`.
// nullopt: it is well formed.
std::optional<HeadError> ReadHead(std::string_view head, const HeadLimits& limits,
                                  HttpRequest* request, BodyFraming* framing);

}  // namespace latte
