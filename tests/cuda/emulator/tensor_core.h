// The sums of tensor cores, to the bit: d = c + Σ a[k]·b[k]. The hardware adds a group of products
// at once: it aligns every term to the largest exponent, drops what does not fit, adds the integers
// and drops again. The parameters follow Khattak and Mikaitis, arXiv 2512.07004;
// tensor_core_test.cc compares the sums with their recordings of an A100, L40S, H100 and H200.
#pragma once

#include <bit>
#include <cstdint>

namespace latte::emulator {

struct TensorCore {
  int group;         // products that are added at once
  int extra_bits;    // kept below the 23 of f32 while a group is added
  int min_exponent;  // terms are aligned to at least this one
};

inline constexpr TensorCore kSm80Half{8, 1, -132}, kSm90Half{16, 2, -133};
inline constexpr TensorCore kSm89Fp8{16, -10, -132}, kSm90Fp8{32, -10, -133};

// The smallest exponents of normal operands.
inline constexpr int kLeastBf16 = -126, kLeastF16 = -14, kLeastE4m3 = -6;

// For bf16 and f16 operands, by compute capability.
inline TensorCore TensorCoreOf(int capability) { return capability >= 90 ? kSm90Half : kSm80Half; }

inline float FromBf16(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

// d[m×n] += a[m×k] · b[k×n], row by row, m, n ≤ 256. k is a multiple of the group and at most 32.
// An output with a NaN or an infinity among its operands is their sum in double, rounded.
void AddProducts(const TensorCore& core, const float* a, const float* b, float* d, int m, int n,
                 int k, int least_exponent = kLeastBf16);

}  // namespace latte::emulator
