// A chart of points as text.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace latte {

struct ChartPoint {
  double x = 0;
  double y = 0;
  char mark = '*';  // printable ASCII
};

// A grid with both axes from 0, titles and largest values, at most 72 columns wide and 16 rows
// high; each line ends in a line break. Where points fall on one place, the last one shows. Points
// with a value that is negative or not finite are left out; empty if none remains.
std::string Chart(std::span<const ChartPoint> points, std::string_view x_title,
                  std::string_view y_title);

}  // namespace latte
