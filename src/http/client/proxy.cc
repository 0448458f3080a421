#include "src/http/client/proxy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "src/base/strings.h"
#include "src/base/variables.h"

namespace latte {
namespace {

constexpr int kUsualProxyPort = 1080;  // as libcurl's, of http proxies

// An IPv4 or IPv6 address as bytes.
struct AddressBytes {
  std::array<unsigned char, 16> bytes = {};
  int count = 0;  // 4 or 16; 0: the text is no address
};

AddressBytes ReadAddress(const std::string& text) {
  AddressBytes out;
  if (inet_pton(AF_INET, text.c_str(), out.bytes.data()) == 1) {
    out.count = 4;
  } else if (inet_pton(AF_INET6, text.c_str(), out.bytes.data()) == 1) {
    out.count = 16;
  }
  return out;
}

bool SameBits(const AddressBytes& a, const AddressBytes& b, int bits) {
  const auto whole = static_cast<size_t>(bits / 8);
  if (!std::equal(a.bytes.begin(), a.bytes.begin() + whole, b.bytes.begin())) return false;
  const int rest = bits % 8;
  return rest == 0 || ((a.bytes[whole] ^ b.bytes[whole]) >> (8 - rest)) == 0;
}

std::string_view WithoutLastDot(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

// "h:80", "[::1]:80" and "[::1]" without port and brackets.
std::string_view HostOf(std::string_view entry) {
  if (entry.starts_with('[')) return entry.substr(1, entry.find(']') - 1);
  const size_t colon = entry.find(':');
  return colon == entry.rfind(':') ? entry.substr(0, colon) : entry;
}

// `entry` of no_proxy: an address, a block such as 10.0.0.0/8, or a name, which means its
// subdomains, too.
bool Matches(std::string_view entry, const std::string& host) {
  if (entry == "*") return true;
  const AddressBytes address = ReadAddress(host);
  if (address.count > 0) {
    const size_t slash = entry.find('/');
    const AddressBytes block = ReadAddress(std::string(HostOf(entry.substr(0, slash))));
    if (block.count != address.count) return false;
    int bits = 8 * block.count;
    const int most = bits;
    if (slash != std::string_view::npos) {
      const std::string_view digits = entry.substr(slash + 1);
      const char* const end = digits.data() + digits.size();
      const auto [stop, error] = std::from_chars(digits.data(), end, bits);
      if (error != std::errc() || stop != end || bits < 0 || bits > most) return false;
    }
    return SameBits(address, block, bits);
  }
  const std::string name = Lowered(WithoutLastDot(host));
  std::string domain = Lowered(WithoutLastDot(HostOf(entry)));
  if (domain.starts_with('.')) domain.erase(0, 1);
  if (domain.empty()) return false;
  return name == domain || name.ends_with("." + domain);
}

bool IsDirect(const std::string& host, std::string_view no_proxy) {
  constexpr std::string_view kBetween = ", \t";
  while (!no_proxy.empty()) {
    const size_t begin = std::min(no_proxy.find_first_not_of(kBetween), no_proxy.size());
    no_proxy.remove_prefix(begin);
    const std::string_view entry = no_proxy.substr(0, no_proxy.find_first_of(kBetween));
    if (!entry.empty() && Matches(entry, host)) return true;
    no_proxy.remove_prefix(entry.size());
  }
  return false;
}

bool IsThisMachine(const std::string& host) {
  return Matches("localhost", host) || Matches("127.0.0.0/8", host) || Matches("::1", host);
}

std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                         HexDigit(text[i + 2]) >= 0;
    if (escaped) {
      out += static_cast<char>(16 * HexDigit(text[i + 1]) + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string Base64(const std::string& text) {
  std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');  // with a terminating 0
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

// "user:password@" before the host.
std::string BasicAuthorization(std::string_view user) {
  const size_t colon = user.find(':');
  const std::string_view password =
      colon == std::string_view::npos ? std::string_view() : user.substr(colon + 1);
  return "Basic " + Base64(PercentDecoded(user.substr(0, colon)) + ":" + PercentDecoded(password));
}

tl::unexpected<Error> NoProxy(const std::string& variable, std::string_view why) {
  return InvalidArgument(fmt::format(
      "{}: expected an HTTP proxy, http://HOST:PORT or http://USER:PASSWORD@HOST:PORT with other "
      "characters as %XX: {}",
      variable, why));
}

Result<HttpProxy> ParseProxy(const ProxyVariable& variable) {
  std::string_view rest = variable.value;
  std::string scheme = "http";
  if (const size_t end = rest.find("://"); end != std::string_view::npos) {
    scheme = Lowered(rest.substr(0, end));
    rest.remove_prefix(end + 3);
  }
  if (scheme.starts_with("socks"))
    return NoProxy(variable.name,
                   fmt::format("found one with {}://, which Latte does not speak; set {} to an "
                               "HTTP proxy, or unset it",
                               scheme.substr(0, 8), variable.name));
  if (scheme != "http" && scheme != "https")
    return NoProxy(variable.name, "it begins with neither http:// nor https://");
  rest = rest.substr(0, rest.find_first_of("/?#"));
  HttpProxy out;
  out.variable = variable.name;
  const size_t at = rest.rfind('@');
  if (at != std::string_view::npos) {
    out.authorization = BasicAuthorization(rest.substr(0, at));
    rest.remove_prefix(at + 1);
  }
  std::string text = fmt::format("{}://{}", scheme, rest);
  const bool has_port = rest.find(':', rest.starts_with('[') ? rest.find(']') : 0) != rest.npos;
  if (scheme == "http" && !has_port) text += fmt::format(":{}", kUsualProxyPort);
  const Result<HttpUrl> url = ParseWebUrl(text);
  if (!url) return NoProxy(variable.name, "host and port cannot be read");
  out.url = *url;
  return out;
}

// The first one that has a value.
ProxyVariable FirstOf(std::initializer_list<ProxyVariable> variables) {
  for (const ProxyVariable& variable : variables)
    if (!variable.value.empty()) return variable;
  return {};
}

}  // namespace

std::string HttpProxy::Text() const { return fmt::format("proxy {} ({})", url.Origin(), variable); }

ProxyVariables ReadProxyVariables() {
  const ProxyVariable all =
      FirstOf({{"all_proxy", Env("all_proxy")}, {"ALL_PROXY", Env("ALL_PROXY")}});
  // CGI programs get the field "Proxy" of a client as HTTP_PROXY, so no program reads that one.
  return {.http = FirstOf({{"http_proxy", Env("http_proxy")}, all}),
          .https = FirstOf(
              {{"https_proxy", Env("https_proxy")}, {"HTTPS_PROXY", Env("HTTPS_PROXY")}, all}),
          .no_proxy = FirstOf({{"", Env("no_proxy")}, {"", Env("NO_PROXY")}}).value};
}

Result<std::optional<HttpProxy>> ProxyFor(const HttpUrl& target, const ProxyVariables& variables) {
  const ProxyVariable& named =
      target.scheme == HttpUrl::Scheme::kHttps ? variables.https : variables.http;
  if (target.scheme == HttpUrl::Scheme::kUnix || named.value.empty() ||
      IsThisMachine(target.host) || IsDirect(target.host, variables.no_proxy))
    return std::nullopt;
  LATTE_ASSIGN_OR_RETURN(HttpProxy out, ParseProxy(named));
  return out;
}

std::string ProxyRefusal(const HttpProxy& proxy, int status, const HttpUrl& target) {
  const std::string answer = fmt::format("the {} answers {}", proxy.Text(), status);
  if (status == 407 && proxy.authorization.empty())
    return fmt::format("{}: it asks for a user and a password: set {} to {}", answer,
                       proxy.variable, "http://USER:PASSWORD@HOST:PORT");
  if (status == 407)
    return fmt::format("{}: it does not accept the user and the password of {}", answer,
                       proxy.variable);
  return fmt::format("{} instead of a connection to {}; see {} and no_proxy", answer,
                     target.HostAndPort(), proxy.variable);
}

}  // namespace latte
