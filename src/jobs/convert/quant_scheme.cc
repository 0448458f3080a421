#include "src/jobs/convert/quant_scheme.h"

#include <fmt/format.h>

#include "src/base/one_of.h"
#include "src/checkpoint/expected_tensors.h"
#include "src/checkpoint/formats/formats.h"

namespace latte {

std::vector<const WeightFormat*> WrittenFormats() {
  std::vector<const WeightFormat*> out;
  for (const WeightFormat* format : kWeightFormats)
    if (format->encoder != nullptr) out.push_back(format);
  return out;
}

std::optional<QuantScheme> FindWrittenScheme(std::string_view name) {
  for (const WeightFormat* format : WrittenFormats()) {
    if (format->encoder->name != name) continue;
    QuantScheme scheme = format->encoder->scheme;
    scheme.format = format;
    return scheme;
  }
  return std::nullopt;
}

Result<QuantScheme> ParseQuantScheme(std::string_view name, int64_t group) {
  if (group != 32 && group != 128)
    return InvalidArgument(fmt::format("--group: expected 32 or 128, found {}", group));
  std::optional<QuantScheme> scheme = FindWrittenScheme(name);
  if (!scheme) {
    std::vector<std::string_view> names;
    for (const WeightFormat* format : WrittenFormats()) names.push_back(format->encoder->name);
    return InvalidArgument(fmt::format("--to: expected {}, found '{}'", OneOf(names), name));
  }
  if (scheme->format->encoder->grouped) scheme->block_columns = group;
  return *scheme;
}

bool TakesMatrix(const QuantScheme& scheme, std::string_view name) {
  return IsProjection(name) && !scheme.format->encoder->leaves_out(name);
}

bool FitsGroups(const QuantScheme& scheme, int64_t columns) {
  const bool groups = scheme.block_rows == 1 && scheme.block_columns != QuantScheme::kAll;
  return !groups || columns % scheme.block_columns == 0;
}

std::vector<TensorPlan> PlanMatrix(const QuantScheme& scheme, const std::string& name, int64_t rows,
                                   int64_t columns) {
  const StoredMatrix stored = scheme.format->tensors({name, {rows, columns}}, scheme);
  std::vector<TensorPlan> out;
  for (const WeightEncoder::Written& written : scheme.format->encoder->written) {
    const MatrixTensor& tensor = stored.tensors[written.tensor];
    out.push_back({tensor.name, std::string(written.dtype), tensor.shape});
  }
  return out;
}

std::string ModuleOf(std::string_view weight_name) {
  return std::string(weight_name.substr(0, weight_name.rfind('.')));
}

}  // namespace latte
