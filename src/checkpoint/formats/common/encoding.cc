#include "src/checkpoint/formats/common/encoding.h"

#include <algorithm>
#include <cmath>

#include "src/tensor/float_bits.h"

namespace latte {
namespace {

// The next bf16 at or above a value that is not negative.
float RoundUpToBF16(float value) {
  const float rounded = RoundToBF16(value);
  return rounded >= value ? rounded : BF16ToFloat(static_cast<uint16_t>(FloatToBF16(value) + 1));
}

float UniformIntScale(double largest, int largest_code) {
  return RoundToBF16(static_cast<float>(largest / largest_code));
}

}  // namespace

bool IsOfIndexer(std::string_view name) { return name.find(".indexer.") != std::string_view::npos; }

float IntScale(std::span<const float> w, float limit) {
  float most = 0;
  float least = 0;
  for (const float x : w) {
    most = std::max(most, x);
    least = std::min(least, x);
  }
  const float scale = std::max(most / (limit - 0.5f), -least / (limit + 0.5f));
  return scale > kLeastScale ? RoundUpToBF16(scale) : 1.0f;
}

int IntCode(float w, float scale, int limit) {
  const auto least = static_cast<float>(-limit);
  return static_cast<int>(
      std::clamp(std::nearbyint(w / scale), least, static_cast<float>(limit) - 1.0f));
}

std::string UniformIntScaleBytes(double largest, int largest_code) {
  return BytesOf(FloatToBF16(UniformIntScale(largest, largest_code)));
}

int UniformIntCode(float weight, double largest, int largest_code) {
  const long code = std::lround(weight / UniformIntScale(largest, largest_code));
  return static_cast<int>(
      std::clamp(code, static_cast<long>(-largest_code), static_cast<long>(largest_code)));
}

}  // namespace latte
