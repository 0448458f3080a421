// The formats that are written, and the matrices that each includes. Shared by `latte quantize` and
// synthetic checkpoints. docs/formats/weights.md describes the layouts and their sources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/checkpoint/formats/common/weight_format.h"
#include "src/jobs/convert/checkpoint_writer.h"

namespace latte {

// Every format that has an encoder.
std::vector<const WeightFormat*> WrittenFormats();

// The scheme that the format `name` of --to is written in: "int4"; nullopt if no format has the
// name.
std::optional<QuantScheme> FindWrittenScheme(std::string_view name);

// The same, with `group` columns that share a scale if the format has groups.
// Errors: kInvalidArgument listing the accepted values.
[[nodiscard]] Result<QuantScheme> ParseQuantScheme(std::string_view name, int64_t group);

// Below, `scheme` is one of these.

// Whether the scheme includes the matrix `name` ("….weight"), whatever its size.
bool TakesMatrix(const QuantScheme& scheme, std::string_view name);

// Whether rows of `columns` elements divide into groups.
bool FitsGroups(const QuantScheme& scheme, int64_t columns);

// The tensors that are written for the matrix `name` of shape [rows, columns], in the order of
// WeightEncoder::written: values, scales, and, if the format has it, the shape.
std::vector<TensorPlan> PlanMatrix(const QuantScheme& scheme, const std::string& name, int64_t rows,
                                   int64_t columns);

// "model.norm" for "model.norm.weight".
std::string ModuleOf(std::string_view weight_name);

}  // namespace latte
