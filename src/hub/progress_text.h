// The progress of a download or of another job, as text.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace latte {

// Bytes, or other units, per second over the last ten seconds.
class TransferRate {
 public:
  // `seconds`: of a clock that does not go back.
  void Add(double seconds, int64_t bytes);
  double Get() const;  // 0 before two values

 private:
  struct Point {
    double seconds;
    int64_t bytes;
  };
  std::deque<Point> points_;
};

// "1:02:03", "4:05"
std::string DurationText(double seconds);

// " 42%  13.20 of 31.41 GB  85.20 MB/s  3:34 left"; without a rate the end is left out. With a
//        noun:
// " 42%  420 of 1000 tokens  25.1 tokens/s  0:23 left". At most `columns` long: the rate goes
//        first, then the
// counts, then the time left.
std::string ProgressText(int64_t done, int64_t total, double rate, size_t columns,
                         std::string_view noun = {});

}  // namespace latte
