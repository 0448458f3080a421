// Addresses of servers: http://, https:// and unix:PATH. Pure.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

struct HttpUrl {
  enum class Scheme { kHttp, kHttps, kUnix };

  Scheme scheme = Scheme::kHttp;
  std::string host;    // a name, an IPv4 address, or an IPv6 address without brackets
  int port = 80;       // 1 to 65535
  std::string path;    // empty, or begins with '/' and does not end with it
  std::string socket;  // path of the Unix socket

  // The value of the Host field: "example.org", "[::1]:8000"; "localhost" for a Unix socket.
  std::string Authority() const;
  // The address without the path: "http://[::1]:8000", "unix:/run/latte.sock".
  std::string Origin() const;
};

// "http://host", "https://[::1]:8443/prefix/v1", "unix:/run/latte.sock". Names of users, queries and
// fragments are refused. Errors: kInvalidArgument.
[[nodiscard]] Result<HttpUrl> ParseUrl(std::string_view text);

// The path of an API function, for a base address with or without the version. `function` begins
// with '/': "/v1/models" for bases http://host and http://host/v1, "/x/v1/models" for http://host/x.
std::string ApiPath(const HttpUrl& base, std::string_view function);

}  // namespace latte
