#include "src/base/fields/suggest.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace latte {
namespace {

// A name is short; a longer word has no near name, and comparing it takes time.
constexpr size_t kLongest = 256;

// The fewest insertions, deletions, substitutions and swaps of neighbours that make `a` of `b`.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_back(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + other});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_back[j - 2] + 1);
    }
    std::swap(two_back, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

size_t MostDifferent(std::string_view a, std::string_view b) {
  return std::max<size_t>(1, std::max(a.size(), b.size()) / 3);
}

}  // namespace

std::optional<std::string> Closest(std::string_view word, std::span<const std::string> known) {
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  const std::string* closest = nullptr;
  size_t least = 0;
  for (const std::string& name : known) {
    if (name.empty() || name.size() > kLongest) continue;
    const size_t distance = Distance(word, name);
    // A word of one character is near to every other one.
    if (distance > MostDifferent(word, name) || distance >= std::max(word.size(), name.size()))
      continue;
    if (closest != nullptr && distance >= least) continue;
    closest = &name;
    least = distance;
  }
  return closest == nullptr ? std::nullopt : std::optional(*closest);
}

std::string DidYouMean(std::string_view word, std::span<const std::string> known) {
  const std::optional<std::string> closest = Closest(word, known);
  return closest ? "; did you mean " + *closest + "?" : "";
}

}  // namespace latte
