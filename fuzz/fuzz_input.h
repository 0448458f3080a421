// Code that the fuzz targets share: splitting an input into parts, and claims that must hold for
// every input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace latte::fuzz {

// Ends the process, which libFuzzer reports as a finding.
inline void Require(bool holds, std::string_view claim) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(claim.size()), claim.data());
  std::abort();
}

inline std::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The text before and after the first `separator`; the whole text and nothing if there is none.
inline std::pair<std::string_view, std::string_view> Cut(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

// True for one of `n` inputs, always the same ones: for checks that are too slow to run each time.
inline bool OneIn(uint32_t n, std::string_view input) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : input) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return (hash >> 16) % n == 0;  // the low bits depend only on the low bits of the text
}

}  // namespace latte::fuzz
