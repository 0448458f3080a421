// Entry points of the subjects for sm_80 and later, for tools/check_sass.py.
#include "tests/cuda/subjects/combine.cuh"
#include "tests/cuda/subjects/mla_decode_sm80.cuh"

namespace latte::cuda {

#define LATTE_DECODE(rows, keys)                                                 \
  extern "C" LATTE_KERNEL((Sm80Tile<rows, keys>::kThreads))                      \
      decode_sm80_##rows##x##keys(const LATTE_GRID_CONSTANT MlaDecodeParams p) { \
    MlaDecodeSm80<Sm80Tile<rows, keys>>(p);                                      \
  }
LATTE_DECODE(64, 64)
LATTE_DECODE(64, 32)
LATTE_DECODE(16, 64)
LATTE_DECODE(16, 32)

extern "C" LATTE_KERNEL(kCombineThreads) combine(const LATTE_GRID_CONSTANT CombineParams p) {
  Combine(p);
}

}  // namespace latte::cuda
