// The formats in which quantised checkpoints are written, and which matrices they take. The same
// for `latte quantize` and for synthetic checkpoints; docs/formats/weights.md has the layouts and
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
    kI4,  // compressed-tensors pack-quantized: offset binary, a bf16 scale per `group` of a row
  };
  Kind kind = Kind::kF8;
  int64_t group = 32;  // of int4; a multiple of 8
};

inline constexpr int64_t kF8Block = 128;  // rows and columns

// Whether the scheme takes the matrix `name` ("….weight") at all, whatever its size: projections of
// attention and MLPs, int8 and int4 without the indexer's, int4 without kv_b_proj.
bool TakesMatrix(const QuantScheme& scheme, std::string_view name);

// Whether rows of `columns` elements divide into groups.
bool FitsGroups(const QuantScheme& scheme, int64_t columns);

// The tensors that stand for the matrix `name` of shape [rows, columns]: values, scales, and for
// int4 the shape.
std::vector<TensorPlan> PlanMatrix(const QuantScheme& scheme, const std::string& name, int64_t rows,
                                   int64_t columns);

// quantization_config of config.json. `kept`: modules that the scheme takes and that stay as they
// are ("model.layers.0.mlp.down_proj").
JsonOut QuantizationConfig(const QuantScheme& scheme, const std::vector<std::string>& kept = {});

// "model.norm" of "model.norm.weight".
std::string ModuleOf(std::string_view weight_name);

}  // namespace latte
