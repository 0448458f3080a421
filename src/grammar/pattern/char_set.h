// Sets of Unicode scalar values, for the classes of regular expressions.
#pragma once

#include <compare>
#include <vector>

namespace latte {

struct CharRange {
  char32_t first = 0;
  char32_t last = 0;
  auto operator<=>(const CharRange&) const = default;
};

// Surrogates are in no set.
class CharSet {
 public:
  CharSet() = default;
  CharSet(std::initializer_list<CharRange> ranges) {
    for (const CharRange& range : ranges) Add(range);
  }
  static CharSet All() { return {{0, 0x10FFFF}}; }

  void Add(CharRange range);
  void Add(const CharSet& other);
  CharSet Complement() const;
  CharSet And(const CharSet& other) const;

  bool Contains(char32_t c) const;
  bool empty() const { return ranges_.empty(); }
  // In ascending order; no two of them touch, but for the gap of the surrogates.
  const std::vector<CharRange>& ranges() const { return ranges_; }
  bool operator==(const CharSet&) const = default;

 private:
  void AddScalars(CharRange range);

  std::vector<CharRange> ranges_;
};

}  // namespace latte
