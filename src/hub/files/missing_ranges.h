// The bytes of a file that are missing, and the claims of connections that fetch them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace latte {

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;  // exclusive
  int64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

// Thread-compatible.
class MissingRanges {
 public:
  // `missing` is sorted, without overlaps and empty ranges.
  explicit MissingRanges(std::vector<ByteRange> missing);

  // The first missing bytes without a claim, at most `most`; nothing: all are claimed.
  std::optional<ByteRange> Claim(int64_t most);
  // The bytes [begin, end), which are the first of `claim`, have arrived.
  void Arrived(ByteRange bytes);
  // Gives back what is left of a claim.
  void Release(ByteRange claim);

  // Sorted, without overlaps; claimed bytes that have not arrived are missing.
  const std::vector<ByteRange>& missing() const { return missing_; }
  int64_t bytes() const;

 private:
  std::optional<ByteRange> FirstUnclaimed() const;

  std::vector<ByteRange> missing_;
  std::vector<ByteRange> claimed_;
};

}  // namespace latte
