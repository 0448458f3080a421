// The formats of cached rows, apart from cache_format.h: kernels include no functions.
#pragma once

#include <cstdint>

namespace latte {

enum class CacheFormat : uint8_t {
  kPlain,    // C+R numbers of a floating-point dtype
  kF8,       // e4m3 latents, an f32 scale for every 128 of them, bf16 rope part
  kF8Dense,  // e4m3 throughout, one scale that is not stored
  kI8,       // int8 latents, 16-bit integers for the rope part, an f32 scale of each
  kQ6,       // 6 bits on average: 5 of latents, a bf16 scale for every 32; 12 of the rope part
};

}  // namespace latte
