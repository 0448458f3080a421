// Random numbers that are equal on every machine and with every standard library. Not for secrets.
#pragma once

#include <cstdint>

namespace latte {

// SplitMix64 (Steele, Lea, Flood 2014): hashes one word, so random access needs no state.
inline uint64_t Mix64(uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// A stream of random numbers. Thread-compatible.
class Random {
 public:
  // Streams of one seed are independent: item i of a test may use stream i.
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(Mix64(Mix64(seed) ^ stream)) {}

  // Uniform in [0, n). Requires: n > 0.
  uint64_t Below(uint64_t n) {
    // Rejecting 2^64 mod n words avoids a bias to small numbers.
    const uint64_t uneven = (UINT64_MAX % n + 1) % n;
    while (true) {
      const uint64_t word = Mix64(state_++);
      if (word <= UINT64_MAX - uneven) return word % n;
    }
  }

 private:
  uint64_t state_;
};

}  // namespace latte
