#include "src/http/client/url.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/http/message.h"

namespace latte {
namespace {

constexpr std::string_view kVersion = "/v1";
constexpr size_t kMostBytes = 4096;  // of a base address

bool IsNameChar(char c) { return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_'; }

bool IsPathChar(char c) { return c > ' ' && c < 0x7f; }

bool IsVersion6(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool All(std::string_view text, bool (*is)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is);
}

bool ReadPort(std::string_view text, int* port) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *port);
  return error == std::errc() && stop == end && *port >= 1 && *port <= 65535;
}

// Reads "host", "host:80", "[::1]:80". Like the functions below, returns what is wrong, or nothing.
std::string ReadAuthority(std::string_view authority, HttpUrl* out) {
  std::string_view rest;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return "']' is missing";
    out->host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
    if (!IsVersion6(out->host)) return "what stands in brackets is no IPv6 address";
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    if (authority.find(':', colon + 1) != std::string_view::npos)
      return "an IPv6 address is written in brackets";
    out->host = authority.substr(0, colon);
    rest = authority.substr(colon);
    if (out->host.empty()) return "the host is missing";
    if (!All(out->host, IsNameChar))
      return "the host has a character that names of hosts do not have";
  }
  if (rest.empty()) return {};
  if (!rest.starts_with(':') || !ReadPort(rest.substr(1), &out->port))
    return "the port is not a number in [1, 65535]";
  return {};
}

std::string ReadUnix(std::string_view path, HttpUrl* out) {
  constexpr size_t kMostPath = 107;  // of struct sockaddr_un, without the terminating 0
  out->scheme = HttpUrl::Scheme::kUnix;
  out->socket = path;
  if (path.empty()) return "the path of the socket is missing";
  if (path.find('\0') != std::string_view::npos) return "the path contains a 0 byte";
  if (path.size() > kMostPath)
    return fmt::format("paths of sockets have at most {} bytes", kMostPath);
  return {};
}

bool TakePrefix(std::string_view prefix, std::string_view* text) {
  if (!StartsWithNoCase(*text, prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// No message repeats an address with a user name, which may have a password, too.
constexpr std::string_view kUserName = "a user name in the address is not supported";

// Reads scheme, authority, path and query of an http or https address.
std::string ReadWeb(std::string_view text, HttpUrl* out) {
  if (TakePrefix("https://", &text)) {
    out->scheme = HttpUrl::Scheme::kHttps;
    out->port = 443;
  } else if (!TakePrefix("http://", &text)) {
    return "it begins with none of these";
  }
  const size_t end = std::min(text.find_first_of("/?#"), text.size());
  const std::string_view authority = text.substr(0, end);
  if (authority.find('@') != std::string_view::npos) return std::string(kUserName);
  if (std::string wrong = ReadAuthority(authority, out); !wrong.empty()) return wrong;
  std::string_view path = text.substr(end);
  if (!path.empty() && !All(path, IsPathChar))
    return "a character of the path must be written as %XX";
  path = path.substr(0, path.find('#'));
  out->path = path.substr(0, path.find('?'));
  if (path.size() > out->path.size()) out->query = path.substr(out->path.size() + 1);
  return {};
}

// "/a/b/../c" → "/a/c" (RFC 3986 §5.2.4).
std::string WithoutDots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    if (part == "..") out.resize(std::min(out.rfind('/'), out.size()));
    if (part != "." && part != "..") out.append("/").append(part);
    if ((part == "." || part == "..") && path.empty()) out += '/';
  }
  return out;
}

// Some servers send what should be %XX as it is; other bytes are kept for the parser to judge.
std::string WithEscapedUtf8(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) {
      out += UrlEscape(std::string_view(&c, 1), false);
    } else {
      out += c;
    }
  return out;
}

// Whether `location` begins with a scheme, as in "https:".
bool HasScheme(std::string_view location) {
  const size_t end = location.find_first_of(":/?#");
  return end != std::string_view::npos && end > 0 && location[end] == ':';
}

}  // namespace

std::string HttpUrl::HostAndPort() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}:{}", is_v6 ? "[" + host + "]" : host, port);
}

std::string HttpUrl::Authority() const {
  if (scheme == Scheme::kUnix) return "localhost";
  const int usual = scheme == Scheme::kHttps ? 443 : 80;
  std::string out = HostAndPort();
  if (port == usual) out.resize(out.rfind(':'));
  return out;
}

std::string HttpUrl::Origin() const {
  if (scheme == Scheme::kUnix) return "unix:" + socket;
  return (scheme == Scheme::kHttps ? "https://" : "http://") + Authority();
}

std::string HttpUrl::Text() const {
  return query.empty() ? Origin() + path : fmt::format("{}{}?{}", Origin(), path, query);
}

bool HttpUrl::SameOrigin(const HttpUrl& other) const {
  return scheme == other.scheme && EqualNoCase(host, other.host) && port == other.port &&
         socket == other.socket;
}

Result<HttpUrl> ParseUrl(std::string_view text) {
  constexpr std::string_view kExpected = "http://HOST:PORT, https://HOST:PORT or unix:PATH";
  if (text.size() > kMostBytes)
    return InvalidArgument(
        fmt::format("URL: expected at most {} bytes, found {}", kMostBytes, text.size()));
  HttpUrl out;
  std::string_view rest = text;
  std::string wrong = TakePrefix("unix:", &rest) ? ReadUnix(rest, &out) : ReadWeb(text, &out);
  if (wrong == kUserName)
    return InvalidArgument(
        fmt::format("URL: expected {}: {}; use --api-key for a key", kExpected, wrong));
  if (wrong.empty() && out.scheme != HttpUrl::Scheme::kUnix &&
      text.find_first_of("?#") != std::string_view::npos)
    wrong = "'?' and '#' are not supported";
  if (!wrong.empty())
    return InvalidArgument(fmt::format("URL: expected {}, found '{}': {}", kExpected, text, wrong));
  while (out.path.ends_with('/')) out.path.pop_back();
  return out;
}

Result<HttpUrl> ParseWebUrl(std::string_view text) {
  HttpUrl out;
  const std::string wrong = ReadWeb(text, &out);
  if (wrong.empty()) return out;
  return InvalidArgument(fmt::format("expected an http:// or https:// address{}: {}",
                                     wrong == kUserName ? "" : fmt::format(", found '{}'", text),
                                     wrong));
}

Result<HttpUrl> ResolveLocation(const HttpUrl& base, std::string_view location) {
  // Some parsers drop some of these; nothing that is dropped may hide a host.
  for (const char c : location)
    if ((c >= 0 && c <= ' ') || c == '\\' || c == 0x7f)
      return InvalidArgument("expected a Location without blanks, controls and backslashes");
  const std::string text = WithEscapedUtf8(location.substr(0, location.find('#')));
  if (HasScheme(text)) return ParseWebUrl(text);
  if (text.starts_with("//"))
    return ParseWebUrl((base.scheme == HttpUrl::Scheme::kHttps ? "https:" : "http:") + text);
  std::string path = base.path;
  if (text.starts_with('/')) {
    path.clear();
  } else if (!text.empty() && !text.starts_with('?')) {
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    path += '/';
  } else if (text.empty() && !base.query.empty()) {
    path += "?" + base.query;
  }
  LATTE_ASSIGN_OR_RETURN(HttpUrl out, ParseWebUrl(base.Origin() + path + text));
  out.path = WithoutDots(out.path);
  return out;
}

std::string ApiPath(const HttpUrl& base, std::string_view function) {
  std::string_view path = base.path;
  if (path.ends_with(kVersion)) path.remove_suffix(kVersion.size());
  return std::string(path) + std::string(function);
}

std::string UrlEscape(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text)
    if (IsNameChar(c) || c == '~' || (c == '/' && keep_slashes)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  return out;
}

}  // namespace latte
