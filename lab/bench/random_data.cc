#include "lab/bench/random_data.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/base/math.h"
#include "src/base/random.h"

namespace latte {
namespace {

constexpr int64_t kRandomBytes = 1 << 20;

// Repeats the first `filled` bytes of `size`.
void Repeat(std::byte* data, int64_t filled, int64_t size) {
  for (int64_t done = filled; done < size;) {
    const int64_t part = std::min(done, size - done);
    std::memcpy(data + done, data, static_cast<size_t>(part));
    done += part;
  }
}

}  // namespace

void FillRandom(const TensorView& view, float scale, uint64_t seed) {
  const int64_t drawn = std::min(view.elements(), kRandomBytes / 4);
  for (int64_t i = 0; i < drawn; ++i) {
    const uint64_t word = Mix64(seed * 0x10001 + static_cast<uint64_t>(i));
    const float x = scale * (static_cast<float>(word >> 40) * 0x1p-23f - 1.0f);
    if (view.dtype == DType::kF32)
      view.Ptr<float>()[i] = x;
    else
      view.Ptr<uint16_t>()[i] = FloatTo16(x, view.dtype);
  }
  Repeat(view.data, drawn * SizeOf(view.dtype), view.elements() * SizeOf(view.dtype));
}

std::vector<int32_t> ShuffledPages(int64_t first, int64_t count) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), static_cast<int32_t>(first));
  Random random(static_cast<uint64_t>(first) + 1);
  for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random.Below(i)]);
  return out;
}

std::vector<SequenceChunk> EqualChunks(std::span<const int32_t> pages, int64_t batch,
                                       int64_t new_tokens, int64_t cached_tokens, MlaPath path) {
  const size_t each = pages.size() / static_cast<size_t>(batch);
  std::vector<SequenceChunk> out;
  for (int64_t b = 0; b < batch; ++b)
    out.push_back({.query_start = b * new_tokens,
                   .count = new_tokens,
                   .cached_len = cached_tokens,
                   .path = path,
                   .pages = pages.subspan(static_cast<size_t>(b) * each, each)});
  return out;
}

RandomOperands::RandomOperands(int64_t bytes) : memory_(DType::kU8, {RoundUp(bytes, 64)}) {
  std::byte* const data = memory_.view().data;
  const int64_t drawn = std::min(memory_.bytes(), kRandomBytes);
  for (int64_t i = 0; i < drawn; ++i) {
    const uint64_t bits = Mix64(static_cast<uint64_t>(i));
    // Odd bytes are the upper byte of a bf16 or f16 between 2^−15 and 2, or of a small f32. Even
    // bytes are normal numbers as e4m3.
    data[i] = static_cast<std::byte>(i % 2 == 0 ? (bits & 0xbfu) | 9u
                                                : (bits & 0x80u) | 0x38u | (bits & 7u));
  }
  Repeat(data, drawn, memory_.bytes());
}

TensorView RandomOperands::Take(DType type, int64_t b, int64_t n, int64_t k) {
  const int64_t width = CeilDiv(k, ValuesPerElement(type));
  const int64_t bytes = RoundUp(b * n * width * SizeOf(type), 64);
  if (used_ + bytes > memory_.bytes()) used_ = 0;
  const TensorView out(memory_.view().data + used_, type, {b, n, width});
  used_ += bytes;
  return out;
}

}  // namespace latte
