// Names of requests, in answers (X-Request-Id) and in the log.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace latte {

// Whether a client may name its request so: 1 to 128 visible ASCII characters without quotes,
// backslashes and spaces.
bool IsRequestId(std::string_view given);

// 128 random bits, in hex.
std::string NewRequestId();

// The ids of the requests that are being answered. Thread-compatible.
class RequestIds {
 public:
  // The client's id if it may be used, else a new one. If a running request has it, as after a retry
  // of the client, "-" and some random digits are added.
  std::string Take(std::string_view given);
  void Release(const std::string& id) { taken_.erase(id); }
  size_t size() const { return taken_.size(); }

 private:
  std::unordered_set<std::string> taken_;
};

}  // namespace latte
