// Addresses as the HTTP client understands them: one parser decides both where a request goes and
// whether it may carry a token.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

struct UrlOrigin {
  std::string scheme;  // "http" or "https"
  std::string host;    // in lower case
  std::string port;    // with the default of the scheme
  bool operator==(const UrlOrigin&) const = default;
};

// Errors: kInvalidArgument if `url` is no http or https address, or has the name of a user.
[[nodiscard]] Result<UrlOrigin> OriginOf(const std::string& url);

// The address that the Location header `location` of a response from `base` means, without fragment.
// Errors: as OriginOf.
[[nodiscard]] Result<std::string> ResolveLocation(const std::string& base,
                                                  const std::string& location);

// Bytes other than letters, digits and "-._~" as %XX; '/' stays if `keep_slashes`.
std::string UrlEscape(std::string_view text, bool keep_slashes);

}  // namespace latte
