// Proxies, chosen by the usual environment variables: https_proxy, no_proxy. Pure except
// ReadProxyVariables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/http/client/url.h"

namespace latte {

struct HttpProxy {
  HttpUrl url;                // http or https, without a path
  std::string authorization;  // the value of Proxy-Authorization; empty: none
  std::string variable;       // that names it: "https_proxy"

  std::string Text() const;  // for messages, without its password: "proxy http://h:1 (https_proxy)"
};

struct ProxyVariable {
  std::string name;
  std::string value;  // empty: no proxy
};

struct ProxyVariables {
  ProxyVariable http;    // for targets with http
  ProxyVariable https;   // for targets with https
  std::string no_proxy;  // hosts that are reached directly
};

// As libcurl reads them: http_proxy in small letters only, https_proxy, no_proxy and, for both
// schemes, all_proxy also in capitals.
ProxyVariables ReadProxyVariables();

// The proxy on the way to `target`; nullopt: none. Hosts of this machine (localhost, 127.0.0.0/8,
// ::1) and Unix sockets have none. Errors: kInvalidArgument for a value that names no HTTP proxy;
// the message does not repeat it, because it may hold a password.
[[nodiscard]] Result<std::optional<HttpProxy>> ProxyFor(const HttpUrl& target,
                                                        const ProxyVariables& variables);

// Why there is no connection to `target`: the proxy has answered `status` instead.
std::string ProxyRefusal(const HttpProxy& proxy, int status, const HttpUrl& target);

}  // namespace latte
