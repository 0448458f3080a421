#include <algorithm>
#include <cctype>
#include <memory>

#include <curl/curl.h>
#include <fmt/format.h>

#include "src/hub/net/url.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

using Handle = std::unique_ptr<CURLU, void (*)(CURLU*)>;

tl::unexpected<Error> BadAddress(const std::string& url, std::string_view why) {
  return InvalidArgument(
      fmt::format("'{}': expected an http or https address, found {}", Printable(url, 200), why));
}

std::string Part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string out = text;
  curl_free(text);
  return out;
}

// `location` relative to `base`, which may be empty.
Result<Handle> Parse(const std::string& base, const std::string& location) {
  // The parser drops some of these; nothing that is dropped may hide a host.
  for (const char c : location)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\\' || c == 0x7f)
      return BadAddress(location, "a blank, a control character or a backslash");
  Handle url(curl_url(), curl_url_cleanup);
  if (!url) return Exhausted("no memory for an address");
  CURLUcode code = CURLUE_OK;
  if (!base.empty()) code = curl_url_set(url.get(), CURLUPART_URL, base.c_str(), 0);
  if (code == CURLUE_OK) code = curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0);
  if (code != CURLUE_OK) return BadAddress(location, curl_url_strerror(code));
  const std::string scheme = Part(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https")
    return BadAddress(location, fmt::format("'{}'", scheme));
  if (!Part(url.get(), CURLUPART_USER).empty() || !Part(url.get(), CURLUPART_PASSWORD).empty())
    return BadAddress("…", "the name of a user; a token comes from HF_TOKEN");
  return url;
}

}  // namespace

Result<UrlOrigin> OriginOf(const std::string& url) {
  LATTE_ASSIGN_OR_RETURN(const Handle parsed, Parse("", url));
  UrlOrigin out{Part(parsed.get(), CURLUPART_SCHEME), Part(parsed.get(), CURLUPART_HOST),
                Part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT)};
  std::transform(out.host.begin(), out.host.end(), out.host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

Result<std::string> ResolveLocation(const std::string& base, const std::string& location) {
  LATTE_ASSIGN_OR_RETURN(const Handle parsed, Parse(base, location));
  curl_url_set(parsed.get(), CURLUPART_FRAGMENT, nullptr, 0);
  return Part(parsed.get(), CURLUPART_URL);
}

std::string UrlEscape(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) ||
                       std::string_view("-._~").find(c) != std::string_view::npos ||
                       (c == '/' && keep_slashes);
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace latte
