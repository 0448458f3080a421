#include "src/models/weight_repack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "src/base/math.h"

namespace latte {
namespace {

constexpr int64_t kNibbles = 8;  // in a word

// The column, within the eight of a word, of a value by its place from the low bits on.
constexpr std::array<int64_t, kNibbles> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};

// Tensors of a file may be unaligned.
uint32_t WordAt(const TensorView& words, int64_t row, int64_t column) {
  uint32_t word;
  std::memcpy(&word, words.RowBytes(row) + column * 4, sizeof(word));
  return word;
}

uint8_t Nibble(uint32_t word, int64_t place) {
  return static_cast<uint8_t>(word >> (4 * place) & 15u);
}

void ForAll(int64_t count, ThreadPool* threads, const std::function<void(int64_t)>& task) {
  if (threads != nullptr) return threads->ParallelFor(count, task);
  for (int64_t i = 0; i < count; ++i) task(i);
}

// Transposes: out[c, r] = words[r, c] for columns [begin, end). Rows are the outer loop, so that
// each source line is read once and few result lines stay in the L1.
void TransposeWords(const TensorView& words, int64_t begin, int64_t end, const Tensor& out) {
  for (int64_t r = 0; r < words.shape[0]; ++r)
    for (int64_t c = begin; c < end; ++c) {
      const uint32_t word = WordAt(words, r, c);
      std::memcpy(out.view().RowBytes(c) + r * 4, &word, sizeof(word));
    }
}

// Two rows of AWQ words, K = 2·pair and the next, as one byte for each of the word's eight outputs.
void RepackPair(const TensorView& words, int64_t pair, int64_t j, int64_t n, const Tensor& out) {
  const uint32_t low = WordAt(words, 2 * pair, j);
  const bool odd_end = 2 * pair + 1 == words.shape[0];
  const uint32_t high = odd_end ? 0 : WordAt(words, 2 * pair + 1, j);
  for (int64_t place = 0; place < kNibbles; ++place) {
    const int64_t row = j * kNibbles + kAwqOrder[static_cast<size_t>(place)];
    if (row >= n) continue;
    out.view().RowBytes(row)[pair] =
        static_cast<std::byte>(Nibble(low, place) | Nibble(high, place) << 4);
  }
}

constexpr int64_t kLine = 16;  // words of a cache line

}  // namespace

Tensor RepackAwq(const TensorView& words, int64_t n, ThreadPool* threads) {
  const int64_t k = words.shape[0];
  Tensor out(DType::kU4, {n, CeilDiv(k, kNibbles) * 4});
  ForAll(CeilDiv(words.shape[1], kLine), threads, [&](int64_t task) {
    const int64_t end = std::min(words.shape[1], (task + 1) * kLine);
    for (int64_t pair = 0; pair < CeilDiv(k, 2); ++pair)
      for (int64_t j = task * kLine; j < end; ++j) RepackPair(words, pair, j, n, out);
  });
  return out;
}

Tensor RepackGptq(const TensorView& words, ThreadPool* threads) {
  const int64_t n = words.shape[1];
  Tensor out(DType::kU4, {n, words.shape[0] * 4});
  ForAll(CeilDiv(n, kLine), threads, [&](int64_t task) {
    TransposeWords(words, task * kLine, std::min(n, (task + 1) * kLine), out);
  });
  return out;
}

Tensor UnpackInt8(const TensorView& words, ThreadPool* threads) {
  const int64_t bytes = words.shape[1] * 4;
  Tensor out(DType::kI8, {words.shape[0], bytes});
  ForAll(words.shape[0], threads, [&](int64_t i) {
    const std::byte* from = words.RowBytes(i);
    std::byte* to = out.view().RowBytes(i);
    for (int64_t j = 0; j < bytes; ++j) to[j] = from[j] ^ std::byte{0x80};
  });
  return out;
}

Tensor AwqZeros(const TensorView& words, int64_t n) {
  std::array<int64_t, kNibbles> place_of = {};
  for (size_t place = 0; place < kAwqOrder.size(); ++place)
    place_of[static_cast<size_t>(kAwqOrder[place])] = static_cast<int64_t>(place);
  Tensor out(DType::kU8, {n, words.shape[0]});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t g = 0; g < words.shape[0]; ++g)
      out.view().Row<uint8_t>(i)[g] =
          Nibble(WordAt(words, g, i / kNibbles), place_of[static_cast<size_t>(i % kNibbles)]);
  return out;
}

Tensor GptqZeros(const TensorView& words, int64_t n, bool minus_one) {
  Tensor out(DType::kU8, {n, words.shape[0]});
  const int add = minus_one ? 1 : 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t g = 0; g < words.shape[0]; ++g)
      out.view().Row<uint8_t>(i)[g] =
          static_cast<uint8_t>(Nibble(WordAt(words, g, i / kNibbles), i % kNibbles) + add);
  return out;
}

Tensor PackedZeros(const TensorView& words, int64_t n) {
  Tensor out(DType::kU8, {n, words.shape[1]});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t g = 0; g < words.shape[1]; ++g)
      out.view().Row<uint8_t>(i)[g] = Nibble(WordAt(words, i / kNibbles, g), i % kNibbles);
  return out;
}

Tensor Transposed(const TensorView& scales) {
  const auto size = static_cast<size_t>(SizeOf(scales.dtype));
  Tensor out(scales.dtype, {scales.shape[1], scales.shape[0]});
  for (int64_t g = 0; g < scales.shape[0]; ++g)
    for (int64_t i = 0; i < scales.shape[1]; ++i)
      std::memcpy(out.view().RowBytes(i) + static_cast<size_t>(g) * size,
                  scales.RowBytes(g) + static_cast<size_t>(i) * size, size);
  return out;
}

}  // namespace latte
