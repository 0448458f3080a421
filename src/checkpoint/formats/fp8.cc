// fp8 as DeepSeek-V3 stores it: E4M3 values and a scale for each block of 128×128, or of the
// config's weight_block_size; or, as Mistral stores it, one scale for a whole matrix. Scales of
// activations, which such files hold too, are not used: activations are not rounded to fp8 here.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/checkpoint/formats/common/config_keys.h"
#include "src/checkpoint/formats/common/encoding.h"
#include "src/checkpoint/formats/common/stored_values.h"
#include "src/checkpoint/formats/formats.h"

namespace latte {
namespace {

constexpr int64_t kBlock = 128;  // rows and columns of the blocks that are written
static_assert(kEncodedRows % kBlock == 0);

Result<QuantScheme> ParseFp8(const Json& json) {
  QuantScheme scheme = {.bits = 8, .block_rows = kBlock, .block_columns = kBlock};
  LATTE_RETURN_IF_ERROR(Demand(json, "fmt", "e4m3"));
  const std::optional<Json> block = json.Find("weight_block_size");
  if (!block) {
    LATTE_ASSIGN_OR_RETURN(const std::string activations,
                           json.GetStringOr("activation_scheme", "dynamic"));
    if (activations == "static") scheme.block_rows = scheme.block_columns = QuantScheme::kAll;
    return scheme;
  }
  if (!block->is_array() || block->size() != 2)
    return Corrupt(fmt::format("{}: expected two numbers [rows, columns]", block->path()));
  LATTE_ASSIGN_OR_RETURN(scheme.block_rows, block->At(0).AsInt());
  LATTE_ASSIGN_OR_RETURN(scheme.block_columns, block->At(1).AsInt());
  const auto in_range = [](int64_t size) { return size >= 1 && size <= int64_t{1} << 20; };
  if (!in_range(scheme.block_rows) || !in_range(scheme.block_columns))
    return Corrupt(fmt::format("{}: expected two numbers of at least 1, found [{}, {}]",
                               block->path(), scheme.block_rows, scheme.block_columns));
  return scheme;
}

// One scale is a scalar, of a stack [E, 1, 1].
StoredMatrix OneScale(const WantedMatrix& w, QuantScheme scheme) {
  scheme.block_rows = w.rows();
  scheme.block_columns = w.columns();
  const std::vector<int64_t> shape = w.shape.size() == 2 ? std::vector<int64_t>{} : w.Shape(1, 1);
  return {.scheme = scheme,
          .tensors = {{w.name, w.shape, {"F8_E4M3", "F8_E4M3FNUZ"}},
                      {w.name + "_scale_inv", shape, {"F32", "BF16", "F16"}}}};
}

StoredMatrix Fp8Tensors(const WantedMatrix& w, const QuantScheme& scheme) {
  if (scheme.block_rows == QuantScheme::kAll) return OneScale(w, scheme);
  return {.scheme = scheme,
          .tensors = {{w.name, w.shape, {"F8_E4M3", "F8_E4M3FNUZ"}},
                      {w.name + "_scale_inv",
                       w.Shape(CeilDiv(w.rows(), scheme.block_rows),
                               CeilDiv(w.columns(), scheme.block_columns)),
                       {"F32", "BF16", "F16", "F8_E8M0"}}}};
}

Result<LoadedMatrix> LoadFp8(const MappedMatrix& matrix, ThreadPool*) {
  LoadedMatrix out = {.weight = matrix.views[0]};
  TensorView stored = matrix.views[1];
  if (stored.rank == 0) stored = TensorView(stored.data, stored.dtype, {1, 1});
  LATTE_ASSIGN_OR_RETURN(Tensor scale, FloatScales(matrix.name(1), stored));
  out.scale = out.Own(std::move(scale));
  return out;
}

// Encodes one block of at most kBlock rows and columns, whose first element is `at`:
// scale = max|w| / 448, values rounded to the nearest E4M3.
float EncodeBlock(std::span<const float> w, int64_t columns, int64_t at, int64_t rows,
                  int64_t width, EncodedRows& out) {
  float largest = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      largest = std::max(largest, std::abs(w[static_cast<size_t>(at + i * columns + j)]));
  const float scale = largest > kLeastScale ? largest / 448.0f : 1.0f;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const auto e = static_cast<size_t>(at + i * columns + j);
      const uint8_t code = FloatToF8E4M3(w[e] / scale);
      out.values[e] = static_cast<std::byte>(code);
      out.AddError(w[e], F8E4M3ToFloat(code) * scale);
    }
  return scale;
}

EncodedRows EncodeFp8(const QuantScheme&, std::span<const float> w, int64_t columns) {
  const int64_t rows = static_cast<int64_t>(w.size()) / columns;
  EncodedRows out;
  out.values.resize(w.size());
  const int64_t block_columns = CeilDiv(columns, kBlock);
  out.scales.resize(static_cast<size_t>(CeilDiv(rows, kBlock) * block_columns * 4));
  for (int64_t i = 0; i < rows; i += kBlock)
    for (int64_t j = 0; j < columns; j += kBlock) {
      const float scale = EncodeBlock(w, columns, i * columns + j, std::min(kBlock, rows - i),
                                      std::min(kBlock, columns - j), out);
      Put(out.scales, i / kBlock * block_columns + j / kBlock, scale);
    }
  return out;
}

JsonOut Fp8Config(const QuantScheme&, const std::vector<std::string>&) {
  return {{"activation_scheme", "dynamic"},
          {"fmt", "e4m3"},
          {"quant_method", "fp8"},
          {"weight_block_size", {kBlock, kBlock}}};
}

float UniformScaleOf(double largest) { return static_cast<float>(largest / 448); }
std::string Fp8UniformScale(double largest) { return BytesOf(UniformScaleOf(largest)); }
uint32_t Fp8UniformCode(float weight, double largest) {
  return FloatToF8E4M3(weight / UniformScaleOf(largest));
}

constexpr WeightEncoder::Written kFp8Written[] = {{0, "F8_E4M3"}, {1, "F32"}};
const WeightEncoder kFp8Encoder = {
    .name = "fp8",
    .summary = "blocks of 128x128",
    .scheme = {.bits = 8, .block_rows = kBlock, .block_columns = kBlock},
    .written = kFp8Written,
    .leaves_out = [](std::string_view) { return false; },
    .encode = EncodeFp8,
    .config = Fp8Config,
    .uniform_scale = Fp8UniformScale,
    .uniform_code = Fp8UniformCode,
};

}  // namespace

const WeightFormat kFp8Weights = {
    .method = "fp8",
    .parse = ParseFp8,
    .tensors = Fp8Tensors,
    .load = LoadFp8,
    .smaller = "--to int4",
    .encoder = &kFp8Encoder,
};

}  // namespace latte
