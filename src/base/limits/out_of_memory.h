// A lack of memory or of threads, on its way from the call that met it to the public function, or
// the command, that reports it as kExhausted.
//
// It travels as an exception, unlike every other error (docs/adr/0011-exhaustion-is-thrown.md): any
// allocation of the standard library throws one, so each caller between must be safe under it
// anyhow.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "latte/status.h"

namespace latte {

// Thrown where the size and the purpose are known. The text is kept in place, as there may be no
// memory left to keep it elsewhere.
class OutOfMemory : public std::bad_alloc {
 public:
  // what_for completes "… bytes for": "the scratch memory of a step".
  OutOfMemory(int64_t bytes, std::string_view what_for) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[160];
};

// kExhausted for a lack of memory or threads: what was asked for, which limit holds for the process
// and what to do. kInternal for any other exception, none of which is ours.
// Never throws: without memory for the text, the text is short.
Error ErrorOf(const std::exception& thrown) noexcept;

// Runs `call`, which returns a Result, and makes of a lack of memory or threads its result. Other
// exceptions, as of an embedder's function, pass.
template <class Call>
std::invoke_result_t<Call> CatchExhaustion(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc& thrown) {
    return tl::unexpected<Error>(ErrorOf(thrown));
  } catch (const std::system_error& thrown) {
    return tl::unexpected<Error>(ErrorOf(thrown));
  }
}

}  // namespace latte
