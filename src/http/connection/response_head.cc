#include "src/http/connection/response_head.h"

#include <ctime>

#include <fmt/format.h>

namespace latte {
namespace {

std::string HttpDate() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[40];
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc));
}

// A value cannot end its field.
std::string FieldValue(std::string_view value) {
  std::string out(value);
  for (char& c : out)
    if (c == '\r' || c == '\n' || c == '\0') c = ' ';
  return out;
}

}  // namespace

std::string ResponseHead(const HttpResponse& response, std::string_view framing, bool close) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n{}", response.status,
                                 HttpReason(response.status), HttpDate(), framing);
  // No browser takes an answer for another type than it says, whatever a model has written into it.
  head += "X-Content-Type-Options: nosniff\r\n";
  if (!response.content_type.empty())
    head += fmt::format("Content-Type: {}\r\n", FieldValue(response.content_type));
  for (const auto& [name, value] : response.fields.list())
    head += fmt::format("{}: {}\r\n", name, FieldValue(value));
  head += close ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n";
  return head;
}

}  // namespace latte
