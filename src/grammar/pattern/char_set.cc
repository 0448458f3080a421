#include "src/grammar/pattern/char_set.h"

#include <algorithm>

namespace latte {
namespace {

constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;

}  // namespace

void CharSet::Add(CharRange range) {
  if (range.first < kFirstSurrogate)
    AddScalars({range.first, std::min<char32_t>(range.last, kFirstSurrogate - 1)});
  if (range.last > kLastSurrogate)
    AddScalars({std::max<char32_t>(range.first, kLastSurrogate + 1), range.last});
}

void CharSet::AddScalars(CharRange range) {
  auto at = std::ranges::lower_bound(ranges_, range.first, {},
                                     [](const CharRange& r) { return r.last + 1; });
  auto end = at;
  while (end != ranges_.end() && end->first <= range.last + 1) {
    range.first = std::min(range.first, end->first);
    range.last = std::max(range.last, end->last);
    ++end;
  }
  ranges_.insert(ranges_.erase(at, end), range);
}

void CharSet::Add(const CharSet& other) {
  for (const CharRange& range : other.ranges_) AddScalars(range);
}

CharSet CharSet::Complement() const {
  CharSet out;
  char32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.first > next) out.Add(CharRange{next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= 0x10FFFF) out.Add(CharRange{next, 0x10FFFF});
  return out;
}

CharSet CharSet::And(const CharSet& other) const {
  CharSet out;
  for (const CharRange& a : ranges_)
    for (const CharRange& b : other.ranges_)
      if (a.first <= b.last && b.first <= a.last)
        out.AddScalars({std::max(a.first, b.first), std::min(a.last, b.last)});
  return out;
}

bool CharSet::Contains(char32_t c) const {
  return std::ranges::any_of(ranges_,
                             [&](const CharRange& r) { return r.first <= c && c <= r.last; });
}

}  // namespace latte
