// The generated texts of the tokenizer goldens; tools/tokenizer/golden_strings.py generates the
// same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/text/unicode/unicode.h"

namespace latte {

inline constexpr uint64_t kGoldenTexts = 22000;
inline constexpr uint64_t kGoldenBlocks = 0x110000 / 256;

// 64-bit linear congruential generator (Knuth's MMIX constants).
class Lcg {
 public:
  explicit Lcg(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  uint64_t Below(uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

// A scalar value; small ones are more frequent, surrogates never occur.
inline char32_t RandomCodePoint(Lcg* rng) {
  const uint64_t bits = 7 + rng->Below(14);
  const auto c = static_cast<char32_t>(rng->Below(uint64_t{1} << bits));
  if (c >= 0xD800 && c <= 0xDFFF) return c + 0x800;
  return c < 0x110000 ? c : c - 0x100000;
}

inline std::string RandomText(uint64_t index, const std::vector<std::string>& fragments) {
  Lcg rng(index);
  std::string out;
  const uint64_t count = 1 + rng.Below(12);
  for (uint64_t part = 0; part < count; ++part) {
    const uint64_t kind = rng.Below(8);
    if (kind == 0) {
      AppendUtf8(RandomCodePoint(&rng), &out);
      continue;
    }
    const uint64_t times = 1 + (kind == 1 ? rng.Below(40) : 0);
    const std::string& fragment = fragments[rng.Below(fragments.size())];
    for (uint64_t time = 0; time < times; ++time) out += fragment;
  }
  return out;
}

// Every code point of a block of 256, each with a letter, a space, a digit and itself.
inline std::string BlockText(uint64_t block) {
  std::string out;
  for (uint64_t value = block * 256; value < block * 256 + 256; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string c;
    AppendUtf8(static_cast<char32_t>(value), &c);
    out += "a" + c + " " + c + "1" + c + c + "\n";
  }
  return out;
}

inline std::string GoldenText(uint64_t index, const std::vector<std::string>& fragments) {
  return index < kGoldenTexts ? RandomText(index, fragments) : BlockText(index - kGoldenTexts);
}

// FNV-1a over whole ids instead of bytes.
inline uint64_t HashIds(const std::vector<int32_t>& ids) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const int32_t id : ids) hash = (hash ^ static_cast<uint32_t>(id)) * 0x100000001B3u;
  return hash;
}

inline uint32_t ShortHash(const std::vector<int32_t>& ids) {
  const uint64_t hash = HashIds(ids);
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace latte
