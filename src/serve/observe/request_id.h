// Names of requests: in the X-Request-Id field, in the log and in answers.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace latte {

// Whether a name that a client gives can stand in a log and in a header field: 1 to 128 letters,
// digits and any of "-_.:/+=@".
bool IsRequestId(std::string_view text);

// Makes names that do not repeat: 128 random bits in hexadecimal digits.
class RequestIds {
 public:
  RequestIds();
  // `given`, if it is a name, else a fresh one.
  std::string Choose(std::string_view given);

 private:
  std::mt19937_64 random_;
};

}  // namespace latte
