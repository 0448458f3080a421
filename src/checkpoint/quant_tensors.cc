#include "src/checkpoint/quant_tensors.h"

#include <algorithm>
#include <span>
#include <utility>

#include "src/checkpoint/formats/formats.h"

namespace latte {
namespace {

// Whether the tensor of values exists. One with the name of a plain matrix must also have a dtype
// of this form.
bool HasValues(const StoredMatrix& matrix, const std::string& name, const StoredTensors& tensors) {
  const MatrixTensor& values = matrix.tensors.front();
  const auto found = tensors.find(values.name);
  if (found == tensors.end()) return false;
  return values.name != name ||
         std::ranges::find(values.dtypes, found->second.dtype_name) != values.dtypes.end();
}

// Whether values, and scales if the format has them, exist with these shapes.
bool Fits(const StoredMatrix& matrix, const StoredTensors& tensors) {
  const std::span<const MatrixTensor> parts(matrix.tensors);
  return std::ranges::all_of(parts.first(std::min<size_t>(parts.size(), 2)),
                             [&](const MatrixTensor& tensor) {
                               const auto found = tensors.find(tensor.name);
                               return found != tensors.end() && found->second.shape == tensor.shape;
                             });
}

}  // namespace

StoredMatrix FindMatrix(const QuantConfig& quant, const std::string& name,
                        const std::vector<int64_t>& shape, const StoredTensors& tensors) {
  const WantedMatrix wanted{name, shape};
  std::vector<StoredMatrix> found;
  for (const QuantScheme& scheme : quant.schemes) {
    StoredMatrix matrix = scheme.format->tensors(wanted, scheme);
    if (HasValues(matrix, name, tensors)) found.push_back(std::move(matrix));
  }
  if (found.empty()) return kPlainWeights.tensors(wanted, {});
  const auto fitting = std::ranges::find_if(
      found, [&](const StoredMatrix& matrix) { return Fits(matrix, tensors); });
  return fitting != found.end() ? *fitting : found.front();
}

}  // namespace latte
