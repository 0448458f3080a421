#include "src/checkpoint/formats/common/weight_format.h"

namespace latte {

std::vector<int64_t> WantedMatrix::Shape(int64_t n, int64_t k) const {
  std::vector<int64_t> out(shape.begin(), shape.end() - 2);
  out.insert(out.end(), {n, k});
  return out;
}

void EncodedRows::AddError(float w, float stored) {
  const double error = static_cast<double>(w) - static_cast<double>(stored);
  squared_error += error * error;
  squared += static_cast<double>(w) * static_cast<double>(w);
}

}  // namespace latte
