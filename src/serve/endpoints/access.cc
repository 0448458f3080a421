#include "src/serve/endpoints/access.h"

#include <algorithm>
#include <array>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "src/base/check.h"
#include "src/base/file.h"
#include "src/base/strings.h"
#include "src/serve/prefix_salt.h"

namespace latte {
namespace {

constexpr int64_t kMostKeyFileBytes = 1 << 20;
constexpr size_t kMostPortDigits = 5;

// An address of 127.0.0.0/8. "127.1" is one too, "127.0.0.1." and "127.0.0.1.5" are names.
bool IsLoopbackV4(std::string_view host) {
  constexpr size_t kLongest = 15;
  if (!host.starts_with("127.") || host.size() > kLongest ||
      host.find_first_not_of("0123456789.") != std::string_view::npos)
    return false;
  in_addr address = {};
  return inet_aton(std::string(host).c_str(), &address) != 0 &&
         ntohl(address.s_addr) >> 24U == IN_LOOPBACKNET;
}

// Every byte of `key` is looked at, whatever `given` is.
bool EqualInConstantTime(std::string_view key, std::string_view given) {
  unsigned different = key.size() == given.size() ? 0 : 1;
  for (size_t i = 0; i < key.size(); ++i) {
    const char other = given.empty() ? '\0' : given[i % given.size()];
    different |= static_cast<unsigned char>(key[i] ^ other);
  }
  return different == 0;
}

bool IsPrintable(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// The keys that a request brings, each perhaps empty.
using GivenKeys = std::array<std::string_view, 3>;
GivenKeys KeysOf(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = request.fields.Find("Authorization");
  std::string_view bearer;
  if (StartsWithNoCase(authorization, kBearer))
    bearer = Trimmed(authorization.substr(kBearer.size()));
  return {bearer, request.fields.Find("X-Api-Key"), request.fields.Find("Api-Key")};
}

Status ReadKeys(const std::string& path, std::vector<std::string>* keys) {
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostKeyFileBytes));
  const size_t before = keys->size();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view key = Trimmed(std::string_view(text).substr(begin, end - begin));
    if (!key.empty() && key.front() != '#') keys->emplace_back(key);
    begin = end + 1;
  }
  if (keys->size() == before)
    return InvalidArgument(path + ": expected one API key per line, found none");
  return {};
}

}  // namespace

bool IsLoopback(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return EqualNoCase(host, "localhost") || host == "::1" || IsLoopbackV4(host);
}

std::string_view HostOf(std::string_view authority) {
  const bool in_brackets = authority.starts_with('[');
  const size_t end = in_brackets ? authority.find(']') : authority.find(':');
  if (end == std::string_view::npos) return in_brackets ? "" : authority;
  const std::string_view host = authority.substr(0, in_brackets ? end + 1 : end);
  std::string_view port = authority.substr(host.size());
  if (port.empty()) return host;
  if (!port.starts_with(':')) return "";
  port.remove_prefix(1);
  const bool is_number = port.empty() || IsDigits(port);
  return is_number && port.size() <= kMostPortDigits ? host : "";
}

Result<Access> Access::Create(const ServeOptions& options) {
  Access access;
  access.keys_ = options.api_key;
  if (!options.api_key_file.empty())
    LATTE_RETURN_IF_ERROR(ReadKeys(options.api_key_file, &access.keys_));
  for (const std::string& key : access.keys_)
    if (key.empty() || !IsPrintable(key))
      return InvalidArgument(
          "--api-key: expected visible ASCII characters without spaces, found another character "
          "or nothing");
  if (options.salt_by_key && access.keys_.empty())
    return InvalidArgument(
        "--salt-by-key: expected --api-key or --api-key-file with the keys that it separates, "
        "found none");
  if (options.salt_by_key)
    for (const std::string& key : access.keys_) access.salt_secrets_.push_back(SaltSecretOf(key));
  access.hosts_ = options.allowed_host;
  if (!options.host.empty()) access.hosts_.push_back(options.host);
  access.origins_ = options.cors_origin;
  access.check_host_ = IsLoopback(options.host) || !options.allowed_host.empty();
  return access;
}

bool Access::HostIsAllowed(std::string_view host) const {
  if (IsLoopback(host)) return true;
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& allowed) {
    return EqualNoCase(host, allowed) || EqualNoCase(host, fmt::format("[{}]", allowed));
  });
}

std::optional<Refusal> Access::CheckSite(const HttpRequest& request) const {
  // A browser cannot open a Unix socket.
  if (request.is_unix) return std::nullopt;
  const std::string_view authority = request.fields.Find("Host");
  const std::string_view host = HostOf(authority);
  if (check_host_ && !HostIsAllowed(host))
    return Refusal{403,
                   "Host: expected a name of this server; allow another one with "
                   "--allowed-host NAME"};
  const std::string_view origin = request.fields.Find("Origin");
  if (origin.empty() || AllowedOrigin(request)) return std::nullopt;
  const size_t scheme = origin.find("://");
  if (scheme != std::string_view::npos && EqualNoCase(origin.substr(scheme + 3), authority))
    return std::nullopt;
  return Refusal{403,
                 "Origin: web pages of other origins may not use this server; allow one with "
                 "--cors-origin ORIGIN"};
}

// Some clients send several keys, and only one of them is meant for this server.
std::optional<size_t> Access::FindKey(const HttpRequest& request) const {
  const GivenKeys given = KeysOf(request);
  std::optional<size_t> found;
  for (size_t i = 0; i < keys_.size(); ++i) {
    bool known = false;
    for (const std::string_view key : given) known |= EqualInConstantTime(keys_[i], key);
    if (known && !found) found = i;
  }
  return found;
}

std::string Access::SaltSecret(const HttpRequest& request) const {
  if (salt_secrets_.empty()) return "";
  const std::optional<size_t> key = FindKey(request);
  LATTE_CHECK(key.has_value(), "a request without a key was let in");
  return salt_secrets_[*key];
}

std::optional<Refusal> Access::CheckKey(const HttpRequest& request) const {
  if (keys_.empty()) return std::nullopt;
  const GivenKeys given = KeysOf(request);
  if (std::all_of(given.begin(), given.end(), [](std::string_view key) { return key.empty(); }))
    return Refusal{401,
                   "expected the field \"Authorization: Bearer KEY\", \"X-Api-Key: KEY\" or "
                   "\"Api-Key: KEY\" with an API key of this server, found none"};
  if (FindKey(request)) return std::nullopt;
  return Refusal{401, "the API key is not one of this server's keys"};
}

std::optional<std::string> Access::AllowedOrigin(const HttpRequest& request) const {
  const std::string_view origin = request.fields.Find("Origin");
  if (origin.empty()) return std::nullopt;
  for (const std::string& allowed : origins_)
    if (allowed == "*" || EqualNoCase(allowed, origin)) return allowed == "*" ? "*" : allowed;
  return std::nullopt;
}

}  // namespace latte
