// compressed-tensors pack-quantized: 4- or 8-bit integers along a row, in words of 32 bits, with an
// offset of 8 or 128.
#include <cstdint>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/checkpoint/formats/common/compressed_tensors.h"
#include "src/checkpoint/formats/common/config_keys.h"
#include "src/checkpoint/formats/common/encoding.h"
#include "src/checkpoint/formats/common/stored_values.h"
#include "src/checkpoint/formats/formats.h"

namespace latte {
namespace {

Result<QuantScheme> ParsePackedInt(const Json& weights) {
  QuantScheme scheme;
  LATTE_ASSIGN_OR_RETURN(scheme.bits, IntBits(weights));
  if (scheme.bits != 8 && scheme.bits != 4)
    return NotRead(weights, "num_bits", "4 or 8", fmt::format("{}", scheme.bits));
  LATTE_ASSIGN_OR_RETURN(const std::string strategy, weights.GetString("strategy"));
  LATTE_ASSIGN_OR_RETURN(scheme.block_columns, GroupOfStrategy(weights, strategy));
  return scheme;
}

StoredMatrix PackedIntTensors(const WantedMatrix& w, const QuantScheme& scheme) {
  const QuantScheme own = WithGroup(scheme, w.columns());
  const int64_t groups = CeilDiv(w.columns(), own.block_columns);
  const int64_t bits = scheme.bits;
  return {
      .scheme = own,
      .tensors = {
          {w.name + "_packed", w.Shape(w.rows(), CeilDiv(w.columns() * bits, 32)), {"I32"}},
          {w.name + "_scale", w.Shape(w.rows(), groups), {"F32", "F16", "BF16"}},
          {w.name + "_zero_point", w.Shape(CeilDiv(w.rows() * bits, 32), groups), {"I32"}, false},
          {w.name + "_g_idx", {w.columns()}, {"I32"}, false},
          {w.name + "_shape", {2}, {"I64", "I32"}, false}}};
}

// Zero points u8 [N, groups] of words [⌈N/8⌉, groups].
Tensor PackedIntZeros(const TensorView& words, int64_t n) {
  Tensor out(DType::kU8, {n, words.shape[1]});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t g = 0; g < words.shape[1]; ++g)
      out.view().Row<uint8_t>(i)[g] = Nibble(WordAt(words, i / kNibbles, g), i % kNibbles);
  return out;
}

// int8 values [N, ⌈K/4⌉·4] from words [N, ⌈K/4⌉], which store them with an offset of 128.
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

Result<LoadedMatrix> LoadPackedInt(const MappedMatrix& matrix, ThreadPool* threads) {
  const bool int4 = matrix.stored.scheme.bits == 4;
  if (int4) LATTE_RETURN_IF_ERROR(CheckEvenColumns(matrix));
  LATTE_RETURN_IF_ERROR(CheckOrder(matrix, 3));
  LATTE_RETURN_IF_ERROR(CheckShape(matrix, 4));
  const TensorView& words = matrix.views[0];
  const TensorView& zeros = matrix.views[2];
  LoadedMatrix out = {.scale = matrix.views[1]};
  if (int4) {
    const TensorView bytes(words.data, DType::kU4, {words.shape[0], words.shape[1] * 4});
    out.weight = FirstColumns(bytes, matrix.columns);
    if (!zeros.empty()) out.zero = out.Own(PackedIntZeros(zeros, matrix.rows));
    return out;
  }
  if (!zeros.empty())
    return Unsupported(
        fmt::format("tensor '{}': expected none, found one: int8 weights are read symmetric only",
                    matrix.name(2)));
  out.weight = FirstColumns(out.Own(UnpackInt8(words, threads)), matrix.columns);
  return out;
}

EncodedRows EncodePackedInt(const QuantScheme& scheme, std::span<const float> w, int64_t) {
  EncodedRows out;
  out.values.resize(w.size() / 2);
  const int64_t group = scheme.block_columns;
  const int64_t groups = static_cast<int64_t>(w.size()) / group;
  out.scales.resize(static_cast<size_t>(groups * 2));
  for (int64_t g = 0; g < groups; ++g) {
    const auto run = w.subspan(static_cast<size_t>(g * group), static_cast<size_t>(group));
    const float scale = IntScale(run, 8);
    Put(out.scales, g, FloatToBF16(scale));
    for (int64_t j = 0; j < group; ++j) {
      const float x = run[static_cast<size_t>(j)];
      const int code = IntCode(x, scale, 8);
      out.AddError(x, static_cast<float>(code) * scale);
      // Eight codes per 32-bit word, from its low bits on: two per byte.
      std::byte& both = out.values[static_cast<size_t>(g * group + j) / 2];
      both |= static_cast<std::byte>((code + 8) << (j % 2 * 4));
    }
  }
  return out;
}

JsonOut PackedIntConfig(const QuantScheme& scheme, const std::vector<std::string>& kept) {
  return CompressedTensorsConfig({.format = "pack-quantized",
                                  .weights = QuantArgs(4, "group", false, scheme.block_columns),
                                  .ignore = {"re:.*kv_b_proj$"}},
                                 kept);
}

bool LeavesOut(std::string_view name) {
  return IsOfIndexer(name) || name.ends_with(".kv_b_proj.weight");
}

std::string PackedIntUniformScale(double largest) { return UniformIntScaleBytes(largest, 7); }
uint32_t PackedIntUniformCode(float weight, double largest) {
  return static_cast<uint32_t>(UniformIntCode(weight, largest, 7) + 8);
}

constexpr WeightEncoder::Written kPackedIntWritten[] = {{0, "I32"}, {1, "BF16"}, {4, "I64"}};
const WeightEncoder kPackedIntEncoder = {
    .name = "int4",
    .summary = "a scale per group",
    .scheme = {.bits = 4, .block_columns = 32},
    .grouped = true,
    .written = kPackedIntWritten,
    .leaves_out = LeavesOut,
    .encode = EncodePackedInt,
    .config = PackedIntConfig,
    .uniform_scale = PackedIntUniformScale,
    .uniform_code = PackedIntUniformCode,
};

constexpr std::string_view kPackedIntGroupFormats[] = {"pack-quantized"};

}  // namespace

const WeightFormat kPackedIntWeights = {
    .method = kCompressedTensors,
    .group_formats = kPackedIntGroupFormats,
    .parse = ParsePackedInt,
    .tensors = PackedIntTensors,
    .load = LoadPackedInt,
    .repacks = [](const QuantScheme& scheme) { return scheme.bits == 8; },
    .encoder = &kPackedIntEncoder,
};

}  // namespace latte
