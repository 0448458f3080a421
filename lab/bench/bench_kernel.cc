#include "lab/bench/bench_kernel.h"

#include "src/base/random.h"

namespace latte {
namespace {

float Noise(int64_t i) {
  return static_cast<float>(static_cast<int64_t>(Mix64(static_cast<uint64_t>(i)) >> 40)) *
             0x1p-23f -
         1.0f;
}

}  // namespace

void FillNoise(const TensorView& t) {
  for (int64_t i = 0; i < t.elements(); ++i)
    if (t.dtype == DType::kF32)
      t.Ptr<float>()[i] = Noise(i);
    else
      t.Ptr<uint16_t>()[i] = FloatTo16(Noise(i), t.dtype);
}

}  // namespace latte
