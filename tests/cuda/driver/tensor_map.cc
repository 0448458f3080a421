// cuTensorMapEncodeTiled of libcuda_emulated.so, with the limits of the CUDA Driver API 13.0.
#include <array>
#include <new>

#include "src/kernels/cuda/words/types.h"
#include "tests/cuda/driver/calls.h"

namespace latte::emulator {
namespace {

constexpr unsigned kMostDimensions = 5;

struct TiledMap {
  int type;
  unsigned rank;
  const void* at;
  const uint64_t* sizes;    // elements, rank
  const uint64_t* strides;  // bytes, of dimensions 1 to rank − 1
  const uint32_t* box;      // elements, rank
  const uint32_t* steps;    // elements, rank
  int interleave, swizzle;
};

uint64_t ElementBytes(int type) {
  switch (type) {
    case abi::kMapU8:
      return 1;
    case abi::kMapF16:
    case abi::kMapBf16:
      return 2;
    case abi::kMapF32:
      return 4;
    default:
      return 0;
  }
}

bool IsMultiple(const void* at, uint64_t of) { return reinterpret_cast<uint64_t>(at) % of == 0; }

bool FitsSwizzle(uint64_t box_bytes, int swizzle) {
  constexpr std::array<uint64_t, 4> kSpans = {~uint64_t{0}, 32, 64, 128};
  return swizzle >= 0 && swizzle < std::ssize(kSpans) &&
         box_bytes <= kSpans[static_cast<size_t>(swizzle)];
}

// Whether a real driver takes it, of the element types above and without interleaved layouts.
bool IsWithinLimits(const TiledMap& m) {
  const uint64_t element = ElementBytes(m.type);
  if (element == 0 || m.interleave != abi::kMapInterleaveNone) return false;
  if (m.rank == 0 || m.rank > kMostDimensions || !IsMultiple(m.at, 16)) return false;
  for (unsigned i = 0; i < m.rank; ++i) {
    if (m.sizes[i] == 0 || m.sizes[i] > uint64_t{1} << 32) return false;
    if (m.box[i] == 0 || m.box[i] > 256) return false;
    if (i > 0 && (m.steps[i] == 0 || m.steps[i] > 8)) return false;
  }
  for (unsigned i = 0; i + 1 < m.rank; ++i)
    if (m.strides[i] % 16 != 0 || m.strides[i] >= uint64_t{1} << 40) return false;
  const uint64_t box_bytes = m.box[0] * element;
  return box_bytes % 16 == 0 && FitsSwizzle(box_bytes, m.swizzle);
}

// What TmaLoad of the emulator copies.
bool IsKnown(const TiledMap& m) {
  const bool whole_steps = m.rank < 2 || (m.steps[1] == 1 && (m.rank < 3 || m.steps[2] == 1));
  return m.rank <= 3 && m.box[0] * ElementBytes(m.type) == 128 && (m.rank < 3 || m.box[2] == 1) &&
         m.swizzle == abi::kMapSwizzle128 && whole_steps;
}

}  // namespace
}  // namespace latte::emulator

using namespace latte::emulator;  // NOLINT: the function below has C's name

extern "C" latte::cuda::abi::Code cuTensorMapEncodeTiled(
    void* map, int type, unsigned rank, void* at, const uint64_t* sizes, const uint64_t* strides,
    const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int, int fill) {
  const Call call;
  const TiledMap tiled = {type, rank, at, sizes, strides, box, steps, interleave, swizzle};
  const bool fill_fits =
      fill == abi::kMapFillZeros || (fill == abi::kMapFillNan && type != abi::kMapU8);
  if (!IsMultiple(map, 64) || !fill_fits || !IsWithinLimits(tiled)) return abi::kInvalidValue;
  if (!IsKnown(tiled) || fill != abi::kMapFillZeros) {
    Driver().Report("a tensor map of a kind that the emulator does not know");
    return abi::kInvalidValue;
  }
  Tensor tensor;
  tensor.data = at;
  tensor.element_bytes = static_cast<int>(ElementBytes(type));
  for (unsigned i = 0; i < rank; ++i) {
    tensor.size[i] = static_cast<int64_t>(sizes[i]);
    tensor.box[i] = static_cast<int>(box[i]);
    if (i > 0) tensor.stride_bytes[i - 1] = static_cast<int64_t>(strides[i - 1]);
  }
  EncodeTensorMap(tensor, new (map) latte::cuda::TensorMap);
  return abi::kSuccess;
}
