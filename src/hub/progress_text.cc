#include "src/hub/progress_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/bytes_text.h"

namespace latte {
namespace {

constexpr double kWindowSeconds = 10;
constexpr double kPointSeconds = 0.02;  // values that come faster need no points of their own

}  // namespace

void TransferRate::Add(double seconds, int64_t bytes) {
  if (points_.size() > 1 && seconds - points_[points_.size() - 2].seconds < kPointSeconds)
    points_.pop_back();
  points_.push_back({seconds, bytes});
  while (points_.size() > 2 && points_[1].seconds < seconds - kWindowSeconds) points_.pop_front();
}

double TransferRate::Get() const {
  if (points_.size() < 2) return 0;
  const Point& first = points_.front();
  const Point& last = points_.back();
  const double passed = last.seconds - first.seconds;
  if (passed <= 0) return 0;
  return std::max(0.0, static_cast<double>(last.bytes - first.bytes) / passed);
}

std::string DurationText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string ProgressText(int64_t done, int64_t total, double rate, size_t columns,
                         std::string_view noun) {
  // 100 % only when nothing is missing.
  const int64_t percent =
      total == 0
          ? 100
          : static_cast<int64_t>(100 * static_cast<double>(done) / static_cast<double>(total));
  const std::string share =
      fmt::format("{:3}%", done < total ? std::min<int64_t>(percent, 99) : 100);
  const std::string counts = noun.empty()
                                 ? fmt::format("  {} of {}", BytesText(done), BytesText(total))
                                 : fmt::format("  {} of {} {}", done, total, noun);
  std::string speed;
  std::string left;
  if (rate > 0 && done < total) {
    speed = noun.empty() ? fmt::format("  {}/s", BytesText(static_cast<int64_t>(rate)))
                         : fmt::format("  {:.1f} {}/s", rate, noun);
    left = fmt::format("  {} left", DurationText(static_cast<double>(total - done) / rate));
  }
  for (const std::string& out :
       {share + counts + speed + left, share + counts + left, share + left})
    if (out.size() <= columns) return out;
  return share.substr(0, columns);
}

}  // namespace latte
