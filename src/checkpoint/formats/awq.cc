// AWQ, version gemm: 4-bit integers packed across rows of the matrix, in words of 32 bits, with
// interleaved places.
#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/checkpoint/formats/common/config_keys.h"
#include "src/checkpoint/formats/common/stored_values.h"
#include "src/checkpoint/formats/formats.h"

namespace latte {
namespace {

// The row, within the eight of a word, of a value by its place from the low bits on.
constexpr std::array<int64_t, kNibbles> kOrder = {0, 2, 4, 6, 1, 3, 5, 7};

Status CheckVersion(const Json& json) {
  constexpr std::string_view kRead[] = {"gemm", "GEMM"};
  LATTE_ASSIGN_OR_RETURN(const std::string version, json.GetStringOr("version", "gemm"));
  if (std::ranges::find(kRead, version) != std::end(kRead)) return {};
  return NotRead(json, "version", "gemm", fmt::format("'{}'", version));
}

Result<QuantScheme> ParseAwq(const Json& json) {
  QuantScheme scheme;
  LATTE_ASSIGN_OR_RETURN(scheme.bits, IntIn(json, "bits", 1, 64));
  if (scheme.bits != 4) return NotRead(json, "bits", "4", fmt::format("{}", scheme.bits));
  LATTE_ASSIGN_OR_RETURN(scheme.block_columns, GroupSize(json));
  LATTE_RETURN_IF_ERROR(CheckVersion(json));
  return scheme;
}

StoredMatrix AwqTensors(const WantedMatrix& w, const QuantScheme& scheme) {
  const QuantScheme own = WithGroup(scheme, w.columns());
  const int64_t groups = CeilDiv(w.columns(), own.block_columns);
  const int64_t words = CeilDiv(w.rows(), kNibbles);
  return {.scheme = own,
          .tensors = {{w.module() + ".qweight", w.Shape(w.columns(), words), {"I32"}},
                      {w.module() + ".scales", w.Shape(groups, w.rows()), {"F32", "F16", "BF16"}},
                      {w.module() + ".qzeros", w.Shape(groups, words), {"I32"}}}};
}

// Two columns of the matrix, 2·pair and the next, as one byte for each of the word's eight rows.
void RepackPair(const TensorView& words, int64_t pair, int64_t j, int64_t n, const Tensor& out) {
  const uint32_t low = WordAt(words, 2 * pair, j);
  const bool odd_end = 2 * pair + 1 == words.shape[0];
  const uint32_t high = odd_end ? 0 : WordAt(words, 2 * pair + 1, j);
  for (int64_t place = 0; place < kNibbles; ++place) {
    const int64_t row = j * kNibbles + kOrder[static_cast<size_t>(place)];
    if (row >= n) continue;
    out.view().RowBytes(row)[pair] =
        static_cast<std::byte>(Nibble(low, place) | Nibble(high, place) << 4);
  }
}

// u4 [N, K], ⌈K/8⌉·4 bytes per row, from words [K, ⌈N/8⌉].
Tensor RepackAwq(const TensorView& words, int64_t n, ThreadPool* threads) {
  const int64_t k = words.shape[0];
  Tensor out(DType::kU4, {n, CeilDiv(k, kNibbles) * 4});
  ForAll(CeilDiv(words.shape[1], kLineWords), threads, [&](int64_t task) {
    const int64_t end = std::min(words.shape[1], (task + 1) * kLineWords);
    for (int64_t pair = 0; pair < CeilDiv(k, 2); ++pair)
      for (int64_t j = task * kLineWords; j < end; ++j) RepackPair(words, pair, j, n, out);
  });
  return out;
}

// Zero points u8 [N, groups] of words [groups, ⌈N/8⌉].
Tensor AwqZeros(const TensorView& words, int64_t n) {
  std::array<int64_t, kNibbles> place_of = {};
  for (size_t place = 0; place < kOrder.size(); ++place)
    place_of[static_cast<size_t>(kOrder[place])] = static_cast<int64_t>(place);
  Tensor out(DType::kU8, {n, words.shape[0]});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t g = 0; g < words.shape[0]; ++g)
      out.view().Row<uint8_t>(i)[g] =
          Nibble(WordAt(words, g, i / kNibbles), place_of[static_cast<size_t>(i % kNibbles)]);
  return out;
}

Result<LoadedMatrix> LoadAwq(const MappedMatrix& matrix, ThreadPool* threads) {
  LATTE_RETURN_IF_ERROR(CheckEvenColumns(matrix));
  LoadedMatrix out;
  out.weight =
      FirstColumns(out.Own(RepackAwq(matrix.views[0], matrix.rows, threads)), matrix.columns);
  out.scale = out.Own(Transposed(matrix.views[1]));
  out.zero = out.Own(AwqZeros(matrix.views[2], matrix.rows));
  return out;
}

}  // namespace

const WeightFormat kAwqWeights = {
    .method = "awq",
    .parse = ParseAwq,
    .tensors = AwqTensors,
    .load = LoadAwq,
    .repacks = [](const QuantScheme&) { return true; },
};

}  // namespace latte
