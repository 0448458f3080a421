// HTTP over libcurl: proxies and certificates as libcurl takes them from the environment.
#pragma once

#include <atomic>
#include <string>

#include "src/hub/net/http.h"

namespace latte {

struct CurlOptions {
  double timeout = 30;       // seconds to connect, and of silence
  std::string user_agent;    // "latte/0.1.0"
  std::string certificates;  // file of authorities; empty: the system's
};

// Makes clients that end their request when `stop` becomes true, within about a second. `stop`
// must outlive them. Errors: kUnavailable.
[[nodiscard]] Result<HttpFactory> CurlClients(const CurlOptions& options,
                                              const std::atomic<bool>& stop);

}  // namespace latte
