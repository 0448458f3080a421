// Access to the server: API keys, the Host field against DNS rebinding, the Origin field against
// other web pages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/http/message.h"
#include "src/serve/options.h"

namespace latte {

// Why a request is refused.
struct Refusal {
  int status = 403;
  std::string message;
};

// Immutable, thread-safe.
class Access {
 public:
  // Reads options.api_key_file. Errors: of ReadFile; kInvalidArgument for a file without a key, a
  // key with characters that a header field cannot carry, or salt_by_key without keys.
  [[nodiscard]] static Result<Access> Create(const ServeOptions& options);

  // Checks Host and Origin. A server that listens on loopback serves the names of this machine
  // only: a web page whose name was rebound to 127.0.0.1 sends its own name. nullopt: allowed.
  std::optional<Refusal> CheckSite(const HttpRequest& request) const;

  // Checks `Authorization: Bearer KEY`, `X-Api-Key: KEY` and `Api-Key: KEY`; one of them suffices.
  // The time does not depend on how much of a key is right. nullopt: allowed.
  std::optional<Refusal> CheckKey(const HttpRequest& request) const;

  // The value of Access-Control-Allow-Origin; nullopt: the fields of CORS are left out.
  std::optional<std::string> AllowedOrigin(const HttpRequest& request) const;

  // The secret of a key's prefixes (prefix_salt.h), for a request that CheckKey allows; empty if
  // all keys share them.
  std::string SaltSecret(const HttpRequest& request) const;

  bool has_keys() const { return !keys_.empty(); }

 private:
  bool HostIsAllowed(std::string_view host) const;
  std::optional<size_t> FindKey(const HttpRequest& request) const;

  std::vector<std::string> keys_;
  std::vector<std::string> salt_secrets_;  // of every key, with --salt-by-key
  std::vector<std::string> hosts_;
  std::vector<std::string> origins_;
  bool check_host_ = false;
};

// Whether `host`, a name or an address without port, is this machine itself: localhost, 127.0.0.0/8
// or ::1, the latter also in brackets.
bool IsLoopback(std::string_view host);

// The host of "host", "host:port" or "[address]:port". Empty for anything else, such as
// "[::1].name" or "name:80@other": readers of URLs disagree about it.
std::string_view HostOf(std::string_view authority);

}  // namespace latte
