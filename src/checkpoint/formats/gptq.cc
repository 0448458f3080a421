// GPTQ: 4-bit integers packed along columns of the matrix, in words of 32 bits.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/checkpoint/formats/common/config_keys.h"
#include "src/checkpoint/formats/common/stored_values.h"
#include "src/checkpoint/formats/formats.h"

namespace latte {
namespace {

Result<QuantScheme> ParseGptq(const Json& json) {
  QuantScheme scheme;
  LATTE_ASSIGN_OR_RETURN(scheme.bits, IntIn(json, "bits", 1, 64));
  if (scheme.bits != 4) return NotRead(json, "bits", "4", fmt::format("{}", scheme.bits));
  LATTE_ASSIGN_OR_RETURN(scheme.block_columns, GroupSize(json));
  LATTE_ASSIGN_OR_RETURN(scheme.symmetric, json.GetBoolOr("sym", false));
  LATTE_ASSIGN_OR_RETURN(const std::string layout, json.GetStringOr("checkpoint_format", "gptq"));
  if (layout != "gptq" && layout != "gptq_v2")
    return NotRead(json, "checkpoint_format", "gptq or gptq_v2", fmt::format("'{}'", layout));
  scheme.zero_minus_one = layout == "gptq";
  LATTE_ASSIGN_OR_RETURN(const bool head, json.GetBoolOr("lm_head", false));
  if (head) return NotRead(json, "lm_head", "false", "true");
  return scheme;
}

StoredMatrix GptqTensors(const WantedMatrix& w, const QuantScheme& scheme) {
  const QuantScheme own = WithGroup(scheme, w.columns());
  const int64_t groups = CeilDiv(w.columns(), own.block_columns);
  const std::string module = w.module();
  return {
      .scheme = own,
      .tensors = {{module + ".qweight", w.Shape(CeilDiv(w.columns(), kNibbles), w.rows()), {"I32"}},
                  {module + ".scales", w.Shape(groups, w.rows()), {"F32", "F16", "BF16"}},
                  {module + ".qzeros", w.Shape(groups, CeilDiv(w.rows(), kNibbles)), {"I32"}},
                  {module + ".g_idx", {w.columns()}, {"I32"}, false}}};
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

// u4 [N, K], ⌈K/8⌉·4 bytes per row, from words [⌈K/8⌉, N].
Tensor RepackGptq(const TensorView& words, ThreadPool* threads) {
  const int64_t n = words.shape[1];
  Tensor out(DType::kU4, {n, words.shape[0] * 4});
  ForAll(CeilDiv(n, kLineWords), threads, [&](int64_t task) {
    TransposeWords(words, task * kLineWords, std::min(n, (task + 1) * kLineWords), out);
  });
  return out;
}

// Zero points u8 [N, groups] of words [groups, ⌈N/8⌉].
Tensor GptqZeros(const TensorView& words, int64_t n, bool minus_one) {
  Tensor out(DType::kU8, {n, words.shape[0]});
  const int add = minus_one ? 1 : 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t g = 0; g < words.shape[0]; ++g)
      out.view().Row<uint8_t>(i)[g] =
          static_cast<uint8_t>(Nibble(WordAt(words, g, i / kNibbles), i % kNibbles) + add);
  return out;
}

Result<LoadedMatrix> LoadGptq(const MappedMatrix& matrix, ThreadPool* threads) {
  LATTE_RETURN_IF_ERROR(CheckEvenColumns(matrix));
  LATTE_RETURN_IF_ERROR(CheckOrder(matrix, 3));
  LoadedMatrix out;
  out.weight = FirstColumns(out.Own(RepackGptq(matrix.views[0], threads)), matrix.columns);
  out.scale = out.Own(Transposed(matrix.views[1]));
  const QuantScheme& scheme = matrix.stored.scheme;
  Tensor zeros = GptqZeros(matrix.views[2], matrix.rows, scheme.zero_minus_one);
  const auto* begin = zeros.Ptr<uint8_t>();
  // A weight without zero points has an implicit zero point of 8; kernels for it are simpler.
  if (scheme.symmetric &&
      std::all_of(begin, begin + zeros.bytes(), [](uint8_t zero) { return zero == 8; }))
    return out;
  out.zero = out.Own(std::move(zeros));
  return out;
}

}  // namespace

const WeightFormat kGptqWeights = {
    .method = "gptq",
    .parse = ParseGptq,
    .tensors = GptqTensors,
    .load = LoadGptq,
    .repacks = [](const QuantScheme&) { return true; },
};

}  // namespace latte
