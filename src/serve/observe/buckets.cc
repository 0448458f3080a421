#include "src/serve/observe/buckets.h"

namespace latte {

const Bounds& FirstTokenBounds() {
  static const Bounds bounds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
  return bounds;
}
const Bounds& TokenBounds() {
  static const Bounds bounds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
  return bounds;
}
const Bounds& RequestBounds() {
  static const Bounds bounds = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
  return bounds;
}
const Bounds& IterationBounds() {
  static const Bounds bounds = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  return bounds;
}
// Steps take from some 100 µs (tiny models) to seconds (long prompts).
const Bounds& StepBounds() {
  static const Bounds bounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                0.5,    1,     2.5,    5,     10,   30,    60,   120};
  return bounds;
}

// 1, 2, 5, 10, … up to `most`, as vLLM chooses them.
Bounds LengthBounds(int64_t most) {
  Bounds bounds;
  for (double decade = 1; decade <= static_cast<double>(most); decade *= 10)
    for (const double digit : {1, 2, 5})
      if (digit * decade <= static_cast<double>(most)) bounds.push_back(digit * decade);
  return bounds;
}

}  // namespace latte
