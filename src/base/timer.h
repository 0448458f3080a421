// Seconds since a moment of the steady clock.
#pragma once

#include <chrono>

namespace latte {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace latte
