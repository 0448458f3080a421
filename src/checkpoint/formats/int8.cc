// compressed-tensors int-quantized: one int8 per value; a scale per row, per group of columns, or
// one for the whole matrix.
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

Result<QuantScheme> ParseInt8(const Json& weights) {
  LATTE_ASSIGN_OR_RETURN(const int64_t bits, IntBits(weights));
  if (bits != 8) return NotRead(weights, "num_bits", "8", fmt::format("{}", bits));
  LATTE_ASSIGN_OR_RETURN(const std::string strategy, weights.GetString("strategy"));
  if (strategy == "tensor")
    return QuantScheme{
        .bits = 8, .block_rows = QuantScheme::kAll, .block_columns = QuantScheme::kAll};
  LATTE_ASSIGN_OR_RETURN(const int64_t group, GroupOfStrategy(weights, strategy));
  return QuantScheme{.bits = 8, .block_columns = group};
}

StoredMatrix Int8Tensors(const WantedMatrix& w, const QuantScheme& scheme) {
  const bool one = scheme.block_rows == QuantScheme::kAll;
  QuantScheme own = WithGroup(scheme, w.columns());
  if (one) own.block_rows = w.rows();
  const std::vector<int64_t> scales =
      one ? std::vector<int64_t>{1} : w.Shape(w.rows(), CeilDiv(w.columns(), own.block_columns));
  return {.scheme = own,
          .tensors = {{w.name, w.shape, {"I8"}},
                      {w.name + "_scale", scales, {"F32", "F16", "BF16"}},
                      {w.name + "_zero_point", scales, {"I8"}, false}}};
}

Result<LoadedMatrix> LoadInt8(const MappedMatrix& matrix, ThreadPool*) {
  const TensorView& zeros = matrix.views[2];
  for (int64_t i = 0; i < zeros.elements() && !zeros.empty(); ++i)
    if (zeros.data[i] != std::byte{0})
      return Unsupported(
          fmt::format("tensor '{}': expected zeros of 0, found {}: int8 weights are read "
                      "symmetric only",
                      matrix.name(2), static_cast<int>(static_cast<int8_t>(zeros.data[i]))));
  const TensorView& scale = matrix.views[1];
  return LoadedMatrix{
      .weight = matrix.views[0],
      .scale = scale.rank == 1 ? TensorView(scale.data, scale.dtype, {1, 1}) : scale};
}

EncodedRows EncodeInt8(const QuantScheme&, std::span<const float> w, int64_t columns) {
  const int64_t rows = static_cast<int64_t>(w.size()) / columns;
  EncodedRows out;
  out.values.resize(w.size());
  out.scales.resize(static_cast<size_t>(rows * 2));
  for (int64_t i = 0; i < rows; ++i) {
    const auto row = w.subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns));
    const float scale = IntScale(row, 128);
    Put(out.scales, i, FloatToBF16(scale));
    for (int64_t j = 0; j < columns; ++j) {
      const float x = row[static_cast<size_t>(j)];
      const int code = IntCode(x, scale, 128);
      Put(out.values, i * columns + j, static_cast<int8_t>(code));
      out.AddError(x, static_cast<float>(code) * scale);
    }
  }
  return out;
}

// Engines with int8 products round activations per token for weights of this format.
JsonOut Int8Config(const QuantScheme&, const std::vector<std::string>& kept) {
  return CompressedTensorsConfig({.format = "int-quantized",
                                  .weights = QuantArgs(8, "channel", false, nullptr),
                                  .activations = QuantArgs(8, "token", true, nullptr)},
                                 kept);
}

std::string Int8UniformScale(double largest) { return UniformIntScaleBytes(largest, 127); }
uint32_t Int8UniformCode(float weight, double largest) {
  return static_cast<uint8_t>(UniformIntCode(weight, largest, 127));
}

constexpr WeightEncoder::Written kInt8Written[] = {{0, "I8"}, {1, "BF16"}};
const WeightEncoder kInt8Encoder = {
    .name = "int8",
    .summary = "a scale per row",
    .scheme = {.bits = 8, .block_columns = QuantScheme::kAll},
    .written = kInt8Written,
    .leaves_out = IsOfIndexer,
    .encode = EncodeInt8,
    .config = Int8Config,
    .uniform_scale = Int8UniformScale,
    .uniform_code = Int8UniformCode,
};

constexpr std::string_view kInt8GroupFormats[] = {"int-quantized", "naive-quantized"};

}  // namespace

const WeightFormat kInt8Weights = {
    .method = kCompressedTensors,
    .group_formats = kInt8GroupFormats,
    .parse = ParseInt8,
    .tensors = Int8Tensors,
    .load = LoadInt8,
    .encoder = &kInt8Encoder,
};

}  // namespace latte
