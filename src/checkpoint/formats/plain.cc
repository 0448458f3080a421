// Plain weights: F32, F16 or BF16 values without scales. A matrix that is in no other format is
// plain.
#include "src/checkpoint/formats/formats.h"

namespace latte {
namespace {

StoredMatrix PlainTensors(const WantedMatrix& w, const QuantScheme&) {
  return {.scheme = {.format = &kPlainWeights, .block_columns = 1},
          .tensors = {{w.name, w.shape, {"F32", "F16", "BF16"}}}};
}

Result<LoadedMatrix> LoadPlain(const MappedMatrix& matrix, ThreadPool*) {
  return LoadedMatrix{.weight = matrix.views[0]};
}

}  // namespace

const WeightFormat kPlainWeights = {
    .method = "",
    .tensors = PlainTensors,
    .load = LoadPlain,
    .smaller = "--to int8 or --to int4",
};

}  // namespace latte
