// One line on standard error that is kept up to date: how far a long job is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace latte {

// "writing  1.50 of 31.41 GB". On a terminal at every whole percent, else at the end only.
void ShowBytes(std::string_view what, int64_t done, int64_t total);

// Says how many layers are done, from `after` seconds of its life on: short jobs stay silent.
class LayerProgress {
 public:
  explicit LayerProgress(std::string_view what, double after = 1.0);
  void operator()(int64_t done, int64_t layers) const;

 private:
  std::string_view what_;
  double after_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace latte
