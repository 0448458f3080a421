#include "tests/cuda/emulator/tensor_core.h"

#include <algorithm>
#include <cmath>

namespace latte::emulator {
namespace {

constexpr int kMost = 256;         // columns
constexpr int16_t kZero = -16000;  // the exponent of a zero: two of them stay within int16

double PowerOfTwo(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

int16_t ExponentOf(float x, int least) {
  if (x == 0) return kZero;
  const int e = static_cast<int>(std::bit_cast<uint32_t>(x) >> 23 & 255) - 127;
  return static_cast<int16_t>(std::max(e, least));
}

// The sum of a group, an integer in units of 2^(top − bits), as f32.
float Shorten(const TensorCore& core, double units, int top) {
  const auto sum = static_cast<int64_t>(units);
  if (sum == 0) return 0;
  const int bits = 23 + core.extra_bits;
  const uint64_t v = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int lead = 63 - std::countl_zero(v) + top - bits;
  const int keep = core.extra_bits >= 0 ? 23 : bits;
  const int shift = std::max(lead, -126) - keep - (top - bits);
  const uint64_t kept = shift > 0 ? v >> shift << shift : v;
  const double d = static_cast<double>(kept) * PowerOfTwo(top - bits);
  return static_cast<float>(sum < 0 ? -d : d);
}

// Four numbers at a time where the machine can. AddressSanitizer and run-time choice of functions
// do not agree.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define LATTE_CHOOSE_AT_START __attribute__((target_clones("avx2", "default")))
#else
#define LATTE_CHOOSE_AT_START
#endif

// One group for one row: d[n] += a[group] · b[group×n], with the exponents ea and eb.
LATTE_CHOOSE_AT_START
void AddGroup(const TensorCore& core, const float* a, const int16_t* ea, const float* b,
              const int16_t* eb, float* d, int n) {
  int16_t top[kMost];
  double scale[kMost], sum[kMost];
  for (int j = 0; j < n; ++j)
    top[j] = std::max(static_cast<int16_t>(core.min_exponent), ExponentOf(d[j], -126));
  for (int i = 0; i < core.group; ++i)
    for (int j = 0; j < n; ++j)
      top[j] = std::max(top[j], static_cast<int16_t>(ea[i] + eb[i * n + j]));
  for (int j = 0; j < n; ++j) {
    scale[j] = PowerOfTwo(23 + core.extra_bits - top[j]);
    sum[j] = static_cast<int32_t>(static_cast<double>(d[j]) * scale[j]);
  }
  for (int i = 0; i < core.group; ++i) {
    const double factor = static_cast<double>(a[i]);
    for (int j = 0; j < n; ++j)  // a term is below 2^28, so it fits 32 bits
      sum[j] += static_cast<int32_t>(factor * static_cast<double>(b[i * n + j]) * scale[j]);
  }
  for (int j = 0; j < n; ++j) d[j] = Shorten(core, sum[j], top[j]);
}

bool AllFinite(const float* x, int count) {
  bool finite = true;
  for (int i = 0; i < count; ++i) finite &= std::isfinite(x[i]);
  return finite;
}

// One output, of which an operand may be NaN or infinite.
float AddOne(const TensorCore& core, const float* a, const float* b, float d, int k, int least) {
  double sum = static_cast<double>(d);
  for (int i = 0; i < k; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  if (!AllFinite(a, k) || !AllFinite(b, k) || !std::isfinite(d)) return static_cast<float>(sum);
  int16_t ea[32], eb[32];
  for (int i = 0; i < k; ++i) {
    ea[i] = ExponentOf(a[i], least);
    eb[i] = ExponentOf(b[i], least);
  }
  for (int i = 0; i < k; i += core.group) AddGroup(core, a + i, ea + i, b + i, eb + i, &d, 1);
  return d;
}

void AddOneByOne(const TensorCore& core, const float* a, const float* b, float* d, int m, int n,
                 int k, int least) {
  for (int col = 0; col < n; ++col) {
    float column[32];
    for (int i = 0; i < k; ++i) column[i] = b[i * n + col];
    for (int row = 0; row < m; ++row)
      d[row * n + col] = AddOne(core, a + row * k, column, d[row * n + col], k, least);
  }
}

}  // namespace

void AddProducts(const TensorCore& core, const float* a, const float* b, float* d, int m, int n,
                 int k, int least_exponent) {
  if (!AllFinite(a, m * k) || !AllFinite(b, k * n) || !AllFinite(d, m * n))
    return AddOneByOne(core, a, b, d, m, n, k, least_exponent);
  int16_t ea[32], eb[32 * kMost];
  for (int i = 0; i < k * n; ++i) eb[i] = ExponentOf(b[i], least_exponent);
  for (int row = 0; row < m; ++row) {
    for (int i = 0; i < k; ++i) ea[i] = ExponentOf(a[row * k + i], least_exponent);
    for (int i = 0; i < k; i += core.group)
      AddGroup(core, a + row * k + i, ea + i, b + i * n, eb + i * n, d + row * n, n);
  }
}

}  // namespace latte::emulator
