#include "src/hub/files/missing_ranges.h"

#include <algorithm>

namespace latte {
namespace {

// `ranges` without `bytes`.
std::vector<ByteRange> Without(const std::vector<ByteRange>& ranges, ByteRange bytes) {
  std::vector<ByteRange> out;
  for (const ByteRange& range : ranges) {
    const ByteRange before{range.begin, std::min(range.end, bytes.begin)};
    const ByteRange after{std::max(range.begin, bytes.end), range.end};
    if (before.size() > 0) out.push_back(before);
    if (after.size() > 0) out.push_back(after);
  }
  return out;
}

}  // namespace

MissingRanges::MissingRanges(std::vector<ByteRange> missing) : missing_(std::move(missing)) {}

std::optional<ByteRange> MissingRanges::FirstUnclaimed() const {
  std::vector<ByteRange> free = missing_;
  for (const ByteRange& claim : claimed_) free = Without(free, claim);
  if (free.empty()) return std::nullopt;
  return free.front();
}

std::optional<ByteRange> MissingRanges::Claim(int64_t most) {
  std::optional<ByteRange> out = FirstUnclaimed();
  if (!out) return std::nullopt;
  out->end = std::min(out->end, out->begin + most);
  claimed_.push_back(*out);
  return out;
}

void MissingRanges::Arrived(ByteRange bytes) { missing_ = Without(missing_, bytes); }

void MissingRanges::Release(ByteRange claim) { claimed_ = Without(claimed_, claim); }

int64_t MissingRanges::bytes() const {
  int64_t sum = 0;
  for (const ByteRange& range : missing_) sum += range.size();
  return sum;
}

}  // namespace latte
