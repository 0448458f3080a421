// Entry points of the subjects for sm_90a, for tools/check_sass.py.
#include "tests/cuda/subjects/mla_decode_sm90.cuh"

namespace latte::cuda {

extern "C" LATTE_KERNEL(Sm90::kThreads)
    decode_sm90(const LATTE_GRID_CONSTANT MlaDecodeSm90Params p) {
  MlaDecodeSm90(p);
}

}  // namespace latte::cuda
