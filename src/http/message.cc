#include "src/http/message.h"

#include <algorithm>

#include "src/base/strings.h"

namespace latte {

std::string_view HttpFields::Find(std::string_view name) const {
  for (const auto& [known, value] : list_)
    if (EqualNoCase(known, name)) return value;
  return {};
}

bool HttpFields::Has(std::string_view name) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const auto& field) { return EqualNoCase(field.first, name); });
}

std::string_view HttpReason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace latte
