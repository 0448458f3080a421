#include "src/http/client/url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "src/http/message.h"

namespace latte {
namespace {

constexpr std::string_view kVersion = "/v1";
constexpr size_t kMostBytes = 4096;

tl::unexpected<Error> Wrong(std::string_view text, std::string_view why) {
  return InvalidArgument(fmt::format(
      "URL: expected http://HOST:PORT, https://HOST:PORT or unix:PATH, found '{}': {}", text, why));
}

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool IsAddressChar(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == '.' ||
         c == ':';
}

bool IsPathChar(char c) { return c > ' ' && c < 0x7f; }

bool All(std::string_view text, bool (*is)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is);
}

bool ReadPort(std::string_view text, int* port) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *port);
  return error == std::errc() && stop == end && *port >= 1 && *port <= 65535;
}

// "host", "host:80", "[::1]:80".
Status ReadAuthority(std::string_view text, std::string_view authority, HttpUrl* out) {
  if (authority.find('@') != std::string_view::npos)
    return Wrong(text, "a user name in the address is not supported; use --api-key");
  std::string_view rest;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return Wrong(text, "']' is missing");
    out->host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
    if (!All(out->host, IsAddressChar) || out->host.find(':') == std::string::npos)
      return Wrong(text, "what stands in brackets is no IPv6 address");
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    if (authority.find(':', colon + 1) != std::string_view::npos)
      return Wrong(text, "an IPv6 address is written in brackets");
    out->host = authority.substr(0, colon);
    rest = authority.substr(colon);
    if (out->host.empty()) return Wrong(text, "the host is missing");
    if (!All(out->host, IsNameChar))
      return Wrong(text, "the host has a character that names of hosts do not have");
  }
  if (rest.empty()) return {};
  if (!rest.starts_with(':') || !ReadPort(rest.substr(1), &out->port))
    return Wrong(text, "the port is not a number in [1, 65535]");
  return {};
}

Status ReadPath(std::string_view text, std::string_view path, HttpUrl* out) {
  if (path.find_first_of("?#") != std::string_view::npos)
    return Wrong(text, "'?' and '#' are not supported");
  if (!path.empty() && !All(path, IsPathChar))
    return Wrong(text, "a character of the path must be written as %XX");
  while (path.ends_with('/')) path.remove_suffix(1);
  out->path = path;
  return {};
}

Result<HttpUrl> ReadUnix(std::string_view text, std::string_view path) {
  constexpr size_t kMostPath = 107;  // of struct sockaddr_un, without the terminating 0
  HttpUrl out;
  out.scheme = HttpUrl::Scheme::kUnix;
  out.socket = path;
  if (path.empty()) return Wrong(text, "the path of the socket is missing");
  if (path.find('\0') != std::string_view::npos) return Wrong(text, "the path contains a 0 byte");
  if (path.size() > kMostPath)
    return Wrong(text, fmt::format("paths of sockets have at most {} bytes", kMostPath));
  return out;
}

bool TakePrefix(std::string_view prefix, std::string_view* text) {
  if (text->size() < prefix.size() || !EqualNoCase(text->substr(0, prefix.size()), prefix))
    return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string HttpUrl::Authority() const {
  if (scheme == Scheme::kUnix) return "localhost";
  const bool is_v6 = host.find(':') != std::string::npos;
  std::string out = is_v6 ? "[" + host + "]" : host;
  const int usual = scheme == Scheme::kHttps ? 443 : 80;
  if (port != usual) out += fmt::format(":{}", port);
  return out;
}

std::string HttpUrl::Origin() const {
  if (scheme == Scheme::kUnix) return "unix:" + socket;
  return (scheme == Scheme::kHttps ? "https://" : "http://") + Authority();
}

Result<HttpUrl> ParseUrl(std::string_view text) {
  if (text.size() > kMostBytes)
    return InvalidArgument(
        fmt::format("URL: expected at most {} bytes, found {}", kMostBytes, text.size()));
  std::string_view rest = text;
  if (TakePrefix("unix:", &rest)) return ReadUnix(text, rest);
  HttpUrl out;
  if (TakePrefix("https://", &rest)) {
    out.scheme = HttpUrl::Scheme::kHttps;
    out.port = 443;
  } else if (!TakePrefix("http://", &rest)) {
    return Wrong(text, "it begins with none of these");
  }
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  LATTE_RETURN_IF_ERROR(ReadAuthority(text, rest.substr(0, end), &out));
  LATTE_RETURN_IF_ERROR(ReadPath(text, rest.substr(end), &out));
  return out;
}

std::string ApiPath(const HttpUrl& base, std::string_view function) {
  std::string_view path = base.path;
  if (path.ends_with(kVersion)) path.remove_suffix(kVersion.size());
  return std::string(path) + std::string(function);
}

}  // namespace latte
