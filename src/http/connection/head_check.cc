#include "src/http/connection/head_check.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "src/base/strings.h"

namespace latte {
namespace {

using Check = std::optional<HeadError>;

bool IsTokenChar(char c) {
  return IsAlphanumeric(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

// Bytes of a field's value: text and tabs, no control characters.
bool IsFieldByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

// Blanks around values of fields (RFC 9110 §5.6.3).
constexpr std::string_view kFieldSpaces = " \t";

Check Bad(std::string message) { return HeadError{400, std::move(message)}; }

// The host of "http://host/path", which a proxy's client sends, counts no more than the Host field.
std::string_view WithoutAuthority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!StartsWithNoCase(target, scheme)) continue;
    const size_t end = target.find_first_of("/?#", scheme.size());
    return end == std::string_view::npos ? "/" : target.substr(end);
  }
  return target;
}

Check ReadTarget(std::string_view target, const HeadLimits& limits, HttpRequest* request) {
  if (target.size() > limits.target)
    return HeadError{414, fmt::format("the target has {} bytes, at most {} are accepted",
                                      target.size(), limits.target)};
  const bool visible =
      std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  target = WithoutAuthority(target);
  const bool any = target == "*" && request->method == "OPTIONS";
  const bool is_path = target.starts_with('/') && target.find('#') == std::string_view::npos;
  if (!visible || (!is_path && !any)) return Bad("the target of the request is not a path");
  const size_t question = target.find('?');
  request->path = target.substr(0, question);
  if (question != std::string_view::npos) request->query = target.substr(question + 1);
  return std::nullopt;
}

Check ReadRequestLine(std::string_view line, const HeadLimits& limits, HttpRequest* request,
                      BodyFraming* framing) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return Bad("expected a request line \"METHOD TARGET HTTP/1.1\"");
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(method)) return Bad("the method of the request is no token");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return version.starts_with("HTTP/")
               ? HeadError{505, "expected HTTP/1.1; other versions are not spoken here"}
               : HeadError{400, "the request line does not end with HTTP/1.1"};
  framing->is_http_1_0 = version == "HTTP/1.0";
  request->method = method;
  return ReadTarget(line.substr(first + 1, last - first - 1), limits, request);
}

Check ReadField(std::string_view line, HttpRequest* request) {
  if (line.front() == ' ' || line.front() == '\t')
    return Bad("a header field goes on in the next line, which HTTP/1.1 forbids");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)))
    return Bad("expected a header field \"Name: value\"");
  const std::string_view value = Trimmed(line.substr(colon + 1), kFieldSpaces);
  if (!std::all_of(value.begin(), value.end(), IsFieldByte))
    return Bad("a header field has a control character");
  request->fields.Add(std::string(line.substr(0, colon)), std::string(value));
  return std::nullopt;
}

size_t Count(const HttpFields& fields, std::string_view name) {
  return static_cast<size_t>(
      std::count_if(fields.list().begin(), fields.list().end(),
                    [&](const auto& field) { return EqualNoCase(field.first, name); }));
}

// Whether the list "a, b, c" has an item.
bool ListHas(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    if (EqualNoCase(Trimmed(TakePiece(&list, ','), kFieldSpaces), item)) return true;
  }
  return false;
}

// Whether one of the fields with this name has an item that `matches`.
template <class Matches>
bool AnyField(const HttpFields& fields, std::string_view name, const Matches& matches) {
  return std::any_of(fields.list().begin(), fields.list().end(), [&](const auto& field) {
    return EqualNoCase(field.first, name) && matches(field.second);
  });
}

// A name or an address with an optional port; which ones are served is the handler's matter.
bool IsHost(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return c > 0x20 && c < 0x7f &&
           std::string_view("\"#,/<>?@\\^`{|}").find(c) == std::string::npos;
  });
}

Check ReadLength(const HttpFields& fields, BodyFraming* framing) {
  const size_t lengths = Count(fields, "Content-Length");
  if (Count(fields, "Transfer-Encoding") > 0) {
    if (lengths > 0) return Bad("expected Content-Length or Transfer-Encoding, found both");
    if (framing->is_http_1_0) return Bad("Transfer-Encoding: HTTP/1.0 has no such field");
    if (Count(fields, "Transfer-Encoding") > 1 ||
        !EqualNoCase(fields.Find("Transfer-Encoding"), "chunked"))
      return HeadError{501, "Transfer-Encoding: expected chunked"};
    framing->chunked = true;
    return std::nullopt;
  }
  if (lengths == 0) return std::nullopt;
  if (lengths > 1) return Bad("Content-Length: expected one such field, found several");
  const std::string_view text = fields.Find("Content-Length");
  const bool digits = IsDigits(text);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), framing->length);
  // A length beyond 64 bits is too large, not malformed.
  if (digits && error == std::errc::result_out_of_range) {
    framing->length = UINT64_MAX;
    return std::nullopt;
  }
  if (!digits || error != std::errc() || end != text.data() + text.size())
    return Bad("Content-Length: expected a number of bytes");
  return std::nullopt;
}

void ReadConnection(const HttpFields& fields, BodyFraming* framing) {
  const auto asks = [&](std::string_view item) {
    return AnyField(fields, "Connection",
                    [&](std::string_view value) { return ListHas(value, item); });
  };
  framing->keep_alive = !asks("close") && (!framing->is_http_1_0 || asks("keep-alive"));
}

Check ReadMeaning(HttpRequest* request, BodyFraming* framing) {
  const HttpFields& fields = request->fields;
  const size_t hosts = Count(fields, "Host");
  if (hosts > 1) return Bad("Host: expected one such field, found several");
  if (hosts == 0 && !framing->is_http_1_0) return Bad("Host: this field is missing");
  if (!IsHost(fields.Find("Host"))) return Bad("Host: expected a name or an address");
  if (const Check error = ReadLength(fields, framing)) return error;
  const auto is_encoded = [](std::string_view value) {
    return !value.empty() && !EqualNoCase(value, "identity");
  };
  if (AnyField(fields, "Content-Encoding", is_encoded))
    return HeadError{415, "Content-Encoding: expected a body that is not compressed"};
  const auto is_unknown = [](std::string_view value) {
    return !EqualNoCase(value, "100-continue");
  };
  if (AnyField(fields, "Expect", is_unknown))
    return HeadError{417, "Expect: expected 100-continue"};
  framing->expects_continue = fields.Has("Expect") && !framing->is_http_1_0;
  ReadConnection(fields, framing);
  return std::nullopt;
}

}  // namespace

HeadScan ScanHead(std::string_view bytes, size_t scanned, const HeadLimits& limits) {
  if (!bytes.empty() && !IsTokenChar(bytes.front()))
    return {.error = HeadError{400, "expected an HTTP/1.1 request"}};
  for (size_t i = scanned; i < bytes.size() && i < limits.bytes; ++i) {
    if (bytes[i] != '\n') continue;
    if (i == 0 || bytes[i - 1] != '\r')
      return {.error = HeadError{400, "a line of the head ends without CR"}};
    if (i >= 3 && bytes[i - 2] == '\n' && bytes[i - 3] == '\r') return {.end = i + 1};
  }
  if (bytes.size() < limits.bytes) return {};
  const size_t line = std::min(bytes.find('\r'), bytes.size());
  if (line > limits.target)
    return {.error = HeadError{
                414, fmt::format("the request line is longer than {} bytes", limits.target)}};
  return {.error =
              HeadError{431, fmt::format("request line and header fields are longer than {} bytes",
                                         limits.bytes)}};
}

std::optional<HeadError> ReadHead(std::string_view head, const HeadLimits& limits,
                                  HttpRequest* request, BodyFraming* framing) {
  size_t fields = 0;
  for (size_t begin = 0; begin < head.size();) {
    const size_t end = head.find("\r\n", begin);
    const std::string_view line = head.substr(begin, end - begin);
    if (line.empty()) break;
    if (line.find('\r') != std::string_view::npos || line.find('\0') != std::string_view::npos)
      return Bad("a line of the head has a CR or NUL inside");
    const Check error =
        begin == 0 ? ReadRequestLine(line, limits, request, framing) : ReadField(line, request);
    if (error) return error;
    if (begin > 0 && ++fields > limits.fields)
      return HeadError{431, fmt::format("expected at most {} header fields", limits.fields)};
    begin = end + 2;
  }
  return ReadMeaning(request, framing);
}

}  // namespace latte
