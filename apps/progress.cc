#include "apps/progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace latte {

void ShowBytes(std::string_view what, int64_t done, int64_t total) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  const int64_t step = total / 100 + 1;
  const bool end = done == total;
  if (!end && (!terminal || done / step == (done - 1) / step)) return;
  std::fputs(fmt::format("{}{} {:.2f} of {:.2f} GB{}", terminal ? "\r" : "", what,
                         static_cast<double>(done) / 1e9, static_cast<double>(total) / 1e9,
                         end ? "\n" : "")
                 .c_str(),
             stderr);
}

LayerProgress::LayerProgress(std::string_view what, double after)
    : what_(what), after_(after), start_(std::chrono::steady_clock::now()) {}

void LayerProgress::operator()(int64_t done, int64_t layers) const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const bool end = done == layers;
  if (passed.count() < after_ || (!end && !terminal)) return;
  std::fputs(fmt::format("{}{}: {} of {} layers{}", terminal ? "\r" : "", what_, done, layers,
                         end ? "\n" : "")
                 .c_str(),
             stderr);
}

}  // namespace latte
