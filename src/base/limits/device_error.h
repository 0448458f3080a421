// A device that failed, or that lacks a kernel, reported as an error by the public function or the
// command.
//
// It is an exception, like a lack of memory (out_of_memory.h): any copy and any kernel may throw
// it, and no layer could continue.
#pragma once

#include <stdexcept>
#include <string>

#include "latte/status.h"

namespace latte {

// The text says what the device was doing, and what its driver reports.
class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(const std::string& text, Code code = Code::kUnavailable)
      : std::runtime_error(text), code_(code) {}

  Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace latte
