// Names of requests, in answers (X-Request-Id) and in the log.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace latte {

// Whether a client may name its request so: 1 to 128 visible ASCII characters without quotes,
// backslashes and spaces.
bool IsRequestId(std::string_view given);

// 128 random bits, in hex.
std::string NewRequestId();

// The client's id if it may be used, else a new one. Nothing is kept.
std::string RequestIdFor(std::string_view given);

// The id of a request that is being answered. It is free again when the last copy is released,
// which may be on any thread, also after the list of ids.
using TakenId = std::shared_ptr<const std::string>;

// The ids of the requests that are being answered. Thread-safe.
class RequestIds {
 public:
  // RequestIdFor(given). If a running request has it, as after a retry of the client, "-" and some
  // random digits are added.
  TakenId Take(std::string_view given);
  size_t size() const;

 private:
  struct Taken {
    std::mutex mutex;
    std::unordered_set<std::string> ids;
  };
  std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

}  // namespace latte
