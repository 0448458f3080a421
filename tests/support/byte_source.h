// Makes choices from bytes, so one driver serves random tests and fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace latte::testing_support {

class ByteSource {
 public:
  explicit ByteSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  // 0 … n − 1; 0 if no bytes are left. Requires: 0 < n ≤ 256.
  int32_t Below(int32_t n) {
    if (bytes_.empty()) return 0;
    const int32_t value = bytes_.front() % n;
    bytes_ = bytes_.subspan(1);
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace latte::testing_support
