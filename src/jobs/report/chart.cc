#include "src/jobs/report/chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr int kChartColumns = 60;
constexpr int kChartRows = 12;
constexpr int kChartLabelColumns = 8;

bool HasPlace(const ChartPoint& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && p.x >= 0 && p.y >= 0;
}

// The place of `value` on an axis of `places`, whose last one stands for `largest`.
int ChartPlaceOf(double value, double largest, int places) {
  return largest > 0 ? static_cast<int>(std::lround(value / largest * (places - 1))) : 0;
}

std::string ChartNumber(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::vector<std::string> GridOf(std::span<const ChartPoint> points, double most_x, double most_y) {
  std::vector<std::string> rows(kChartRows, std::string(kChartColumns, ' '));
  for (const ChartPoint& p : points) {
    const int row = kChartRows - 1 - ChartPlaceOf(p.y, most_y, kChartRows);
    rows[static_cast<size_t>(row)][static_cast<size_t>(ChartPlaceOf(p.x, most_x, kChartColumns))] =
        p.mark;
  }
  return rows;
}

}  // namespace

std::string Chart(std::span<const ChartPoint> points, std::string_view x_title,
                  std::string_view y_title) {
  std::vector<ChartPoint> shown;
  std::copy_if(points.begin(), points.end(), std::back_inserter(shown), HasPlace);
  if (shown.empty()) return "";
  const double most_x =
      std::max_element(shown.begin(), shown.end(), [](auto& a, auto& b) { return a.x < b.x; })->x;
  const double most_y =
      std::max_element(shown.begin(), shown.end(), [](auto& a, auto& b) { return a.y < b.y; })->y;
  std::string out = fmt::format("{:>{}} {}\n", "", kChartLabelColumns - 1, y_title);
  const std::vector<std::string> grid = GridOf(shown, most_x, most_y);
  for (int row = 0; row < kChartRows; ++row) {
    const std::string label = row == 0 ? ChartNumber(most_y) : row == kChartRows - 1 ? "0" : "";
    std::string line = grid[static_cast<size_t>(row)];
    line.erase(line.find_last_not_of(' ') + 1);
    out += fmt::format("{:>{}} │{}\n", label, kChartLabelColumns - 1, line);
  }
  std::string axis;
  for (int i = 0; i < kChartColumns; ++i) axis += "─";
  out += fmt::format("{:>{}} └{}\n", "", kChartLabelColumns - 1, axis);
  const std::string most = ChartNumber(most_x);
  return out + fmt::format("{:>{}} 0{:^{}}{}\n", "", kChartLabelColumns, x_title,
                           kChartColumns - 1 - static_cast<int>(most.size()), most);
}

}  // namespace latte
