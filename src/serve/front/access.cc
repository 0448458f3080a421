#include "src/serve/front/access.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr int64_t kMostKeyFileBytes = 1 << 20;

// "localhost:8000" → "localhost", "[::1]:8000" → "[::1]".
std::string_view WithoutPort(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
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
  if (EqualNoCase(host, "localhost") || host == "::1") return true;
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
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
  const std::string_view host = WithoutPort(authority);
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

std::optional<Refusal> Access::CheckKey(const HttpRequest& request) const {
  if (keys_.empty()) return std::nullopt;
  const std::string_view anthropic = request.fields.Find("X-Api-Key");
  const std::string_view azure = request.fields.Find("Api-Key");
  const std::string_view authorization = request.fields.Find("Authorization");
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view bearer;
  if (EqualNoCase(authorization.substr(0, kBearer.size()), kBearer))
    bearer = Trimmed(authorization.substr(kBearer.size()));
  if (bearer.empty() && anthropic.empty() && azure.empty())
    return Refusal{401,
                   "expected the field \"Authorization: Bearer KEY\", \"X-Api-Key: KEY\" or "
                   "\"Api-Key: KEY\" with an API key of this server, found none"};
  // Some clients send several, and only one of them is meant for this server.
  bool known = false;
  for (const std::string& key : keys_) {
    for (const std::string_view given : {bearer, anthropic, azure})
      known |= EqualInConstantTime(key, given);
  }
  if (known) return std::nullopt;
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
