// A lack of memory or of threads, reported as kExhausted by the public function or the command; and
// a failed device (device_error.h), reported as kUnavailable.
//
// Unlike all other errors, it is an exception (docs/adr/0011-exhaustion-is-thrown.md): any
// allocation of the standard library may throw, so every caller must be exception-safe anyway.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "latte/status.h"

#include "src/base/limits/device_error.h"

namespace latte {

// Thrown where size and purpose are known. The text has a fixed buffer: there may be no memory for
// a string.
class OutOfMemory : public std::bad_alloc {
 public:
  // what_for completes "cannot allocate N bytes for": "the scratch memory of a step".
  OutOfMemory(int64_t bytes, std::string_view what_for) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[160];
};

// kExhausted for a lack of memory or threads, with the requested size, the limit of the process and
// what to do. kUnavailable for a failed device. kInternal for any other exception. Never throws:
// without memory for the text, the text is short.
Error ErrorOf(const std::exception& thrown) noexcept;

// Runs `call`, which returns a Result, and turns a lack of memory or threads, or a failed device,
// into an error. Other exceptions, such as an embedder's, pass through.
template <class Call>
std::invoke_result_t<Call> CatchExhaustion(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc& thrown) {
    return tl::unexpected<Error>(ErrorOf(thrown));
  } catch (const std::system_error& thrown) {
    return tl::unexpected<Error>(ErrorOf(thrown));
  } catch (const DeviceError& thrown) {
    return tl::unexpected<Error>(ErrorOf(thrown));
  }
}

}  // namespace latte
