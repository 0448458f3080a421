// Seconds of a duration, since a moment of the steady clock and since 1970; rates.
#pragma once

#include <chrono>
#include <cstdint>

namespace latte {

inline double Seconds(std::chrono::duration<double> time) { return time.count(); }

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return Seconds(std::chrono::steady_clock::now() - start);
}

// 0 if no time has passed.
inline double PerSecond(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// Whole seconds since the beginning of 1970.
inline int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace latte
