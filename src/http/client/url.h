// URLs: http://, https:// and unix:PATH. One parser determines both the destination of a request
// and whether it may carry a token. Pure.
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
  std::string path;    // empty, or begins with '/'
  std::string query;   // what follows '?'
  std::string socket;  // path of the Unix socket

  // The value of the Host field: "example.org", "[::1]:8000"; "localhost" for a Unix socket.
  std::string Authority() const;
  // The host with its port, also the usual one: "example.org:443".
  std::string HostAndPort() const;
  // The address without path and query: "http://[::1]:8000", "unix:/run/latte.sock".
  std::string Origin() const;
  std::string Text() const;  // the whole address
  // Scheme, host and port are equal; hosts are compared without case.
  bool SameOrigin(const HttpUrl& other) const;
};

// The base address of an API: "http://host", "https://[::1]:8443/prefix/v1",
// "unix:/run/latte.sock". Its path does not end with '/'. Names of users, queries and fragments are
// refused. Errors: kInvalidArgument.
[[nodiscard]] Result<HttpUrl> ParseUrl(std::string_view text);

// The address of a page or a file, http or https, with path and query. Its fragment is left out.
// Names of users are refused. Errors: kInvalidArgument.
[[nodiscard]] Result<HttpUrl> ParseWebUrl(std::string_view text);

// The address that the Location field `location` of a response from `base` means (RFC 3986 §5).
// Errors: of ParseWebUrl.
[[nodiscard]] Result<HttpUrl> ResolveLocation(const HttpUrl& base, std::string_view location);

// The path of an API function, for a base address with or without the version. `function` begins
// with '/': "/v1/models" for bases http://host and http://host/v1, "/x/v1/models" for
// http://host/x.
std::string ApiPath(const HttpUrl& base, std::string_view function);

// Bytes other than letters, digits and "-._~" as %XX; '/' stays if `keep_slashes`.
std::string UrlEscape(std::string_view text, bool keep_slashes);

}  // namespace latte
