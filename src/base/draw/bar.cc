#include "src/base/draw/bar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "src/base/check.h"

namespace latte {
namespace {

constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::array<std::string_view, 4> kFills = {"█", "▓", "▒", "░"};
constexpr std::array<std::string_view, 4> kColours = {"\x1b[34m", "\x1b[35m", "\x1b[32m",
                                                      "\x1b[90m"};
constexpr std::string_view kPlain = "\x1b[0m";
constexpr size_t kFillBytes = 3;  // of UTF-8

// The fill that `text` begins with; kFills.size() if none.
size_t FillAt(std::string_view text) {
  return static_cast<size_t>(
      std::find_if(kFills.begin(), kFills.end(),
                   [&](std::string_view fill) { return text.starts_with(fill); }) -
      kFills.begin());
}

// Columns of each part: rounded shares, at least one where the part is not empty, in all `columns`.
std::vector<int> ColumnsOf(std::span<const BarPart> parts, double whole, int columns) {
  std::vector<int> out;
  for (const BarPart& part : parts) {
    const int rounded = static_cast<int>(std::lround(part.amount / whole * columns));
    out.push_back(part.amount > 0 ? std::max(1, rounded) : 0);
  }
  // What rounding has added or left out falls on the largest part, where it changes the picture
  // least.
  for (int rest = columns - std::accumulate(out.begin(), out.end(), 0); rest != 0;) {
    const auto largest = std::max_element(out.begin(), out.end());
    if (rest < 0 && *largest <= 1) break;  // more parts than columns
    *largest += rest < 0 ? -1 : 1;
    rest += rest < 0 ? 1 : -1;
  }
  return out;
}

}  // namespace

std::string Bar(double share, int columns) {
  LATTE_CHECK(columns >= 0);
  if (!(share > 0) || columns == 0) return "";
  const auto eighths =
      std::max<long>(1, std::lround(std::min(share, 1.0) * static_cast<double>(columns) * 8));
  std::string out;
  for (long i = 0; i < eighths / 8; ++i) out += kFills[0];
  return out.append(kEighths[eighths % 8]);
}

std::string_view FillText(BarFill fill) { return kFills[static_cast<size_t>(fill)]; }

std::string StackedBar(std::span<const BarPart> parts, int columns) {
  LATTE_CHECK(columns >= 0);
  double whole = 0;
  for (const BarPart& part : parts) whole += part.amount;
  if (!(whole > 0)) return std::string(static_cast<size_t>(columns), ' ');
  const std::vector<int> shown = ColumnsOf(parts, whole, columns);
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i)
    for (int column = 0; column < shown[i]; ++column) out += FillText(parts[i].fill);
  return out;
}

std::string WithBarColours(std::string_view text) {
  std::string out;
  size_t before = kFills.size();
  while (!text.empty()) {
    const size_t fill = FillAt(text);
    if (fill != before && before < kFills.size()) out += kPlain;
    if (fill != before && fill < kFills.size()) out += kColours[fill];
    before = fill;
    const size_t bytes = fill < kFills.size() ? kFillBytes : 1;
    out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return before < kFills.size() ? out.append(kPlain) : out;
}

}  // namespace latte
