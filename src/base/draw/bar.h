// Bars of text: block characters of one column each, as UTF-8.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace latte {

// `share` of `columns`, to an eighth of a column, without blanks after it. A share above 0 shows.
// Shares outside of [0, 1] and NaN count as the nearest, NaN as 0.
std::string Bar(double share, int columns);

// How a part of a stacked bar is filled, and its mark in a legend.
enum class BarFill { kFull, kDark, kMedium, kLight };
std::string_view FillText(BarFill fill);

struct BarPart {
  double amount = 0;  // at least 0
  BarFill fill = BarFill::kFull;
};

// The parts one after the other in exactly `columns` columns, all of them together. Each part above
// 0 has at least one column, as long as there are enough. Blanks if all parts are 0.
std::string StackedBar(std::span<const BarPart> parts, int columns);

// `text` with its runs of filled columns in colours, for a terminal: each fill has one.
std::string WithBarColours(std::string_view text);

}  // namespace latte
