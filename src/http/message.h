// Requests and responses of HTTP/1.1: plain data.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latte {

// Header fields in the order in which they arrived.
class HttpFields {
 public:
  void Add(std::string name, std::string value) {
    list_.emplace_back(std::move(name), std::move(value));
  }
  // The value of the first field with this name, compared without case; empty if there is none.
  std::string_view Find(std::string_view name) const;
  bool Has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& list() const { return list_; }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

// Whether two names of header fields, or two host names, are equal; ASCII letters without case.
bool EqualNoCase(std::string_view a, std::string_view b);

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // the target before '?', as sent
  std::string query;   // what follows '?'
  HttpFields fields;
  std::string body;
  std::string peer;      // "127.0.0.1:53122", "[::1]:53122" or "unix"
  bool is_unix = false;  // came over a Unix socket
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpFields fields = {};  // further header fields
  bool close = false;      // end the connection after the response
};

std::string_view HttpReason(int status);  // 404: "Not Found"

}  // namespace latte
