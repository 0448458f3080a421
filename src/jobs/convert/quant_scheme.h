// The formats of quantised checkpoints, and the matrices that each format includes. Shared by
// `latte quantize` and synthetic checkpoints. docs/formats/weights.md describes the layouts and
// their sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_out_fwd.h"
#include "src/jobs/convert/checkpoint_writer.h"

namespace latte {

struct QuantScheme {
  enum class Kind {
    kF8,  // DeepSeek's: E4M3, one f32 scale per 128×128 block
    kI8,  // compressed-tensors int-quantized: one bf16 scale per row
    kI4,  // compressed-tensors pack-quantized: offset binary, one bf16 scale per `group` columns
  };
  Kind kind = Kind::kF8;
  int64_t group = 32;  // for int4; a multiple of 8
};

inline constexpr int64_t kF8Block = 128;  // rows and columns

// Whether the scheme includes the matrix `name` ("….weight"), whatever its size: projections of
// attention and MLPs; int8 and int4 exclude the indexer's projections, int4 excludes kv_b_proj.
bool TakesMatrix(const QuantScheme& scheme, std::string_view name);

// Whether rows of `columns` elements divide into groups.
bool FitsGroups(const QuantScheme& scheme, int64_t columns);

// The tensors that represent the matrix `name` of shape [rows, columns]: values, scales, and for
// int4 the shape.
std::vector<TensorPlan> PlanMatrix(const QuantScheme& scheme, const std::string& name, int64_t rows,
                                   int64_t columns);

// The quantization_config for config.json. `kept`: modules that the scheme includes but that stay
// unquantised ("model.layers.0.mlp.down_proj").
JsonOut QuantizationConfig(const QuantScheme& scheme, const std::vector<std::string>& kept = {});

// "model.norm" for "model.norm.weight".
std::string ModuleOf(std::string_view weight_name);

}  // namespace latte
