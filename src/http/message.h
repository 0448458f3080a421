// Requests and responses of HTTP/1.1: plain data.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/http/counted_bytes.h"

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

// The body of a request. Copies share one text. One that a server has received counts in its
// limit until the last copy is released, wherever that is.
class CountedBody {
 public:
  CountedBody() = default;
  CountedBody(std::string text, CountedBytes bytes = {}) {
    if (!text.empty())
      held_ = std::make_shared<const Held>(Held{std::move(bytes), std::move(text)});
  }
  CountedBody(const char* text) : CountedBody(std::string(text)) {}

  std::string_view text() const { return held_ ? std::string_view(held_->text) : ""; }
  operator std::string_view() const { return text(); }
  size_t size() const { return text().size(); }
  bool empty() const { return held_ == nullptr; }

 private:
  struct Held {
    CountedBytes bytes;
    std::string text;
  };
  std::shared_ptr<const Held> held_;  // null: it is empty
};

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // the target before '?', as sent
  std::string query;   // what follows '?'
  HttpFields fields;
  CountedBody body;
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
