// Weights of GGUF files: every matrix is plain or in one of the types of blocks, each in its own.
#include "src/checkpoint/formats/formats.h"

namespace latte {
namespace {

std::vector<std::string_view> GgufTypeNames() {
  std::vector<std::string_view> out = {"F32", "F16", "BF16"};
  for (const DTypeInfo& info : kDTypes)
    if (info.use == DTypeUse::kBlocks) out.push_back(info.stored);
  return out;
}

StoredMatrix GgufTensors(const WantedMatrix& w, const QuantScheme&) {
  return {.scheme = {.format = &kGgufWeights, .block_columns = 1},
          .tensors = {{w.name, w.shape, GgufTypeNames()}}};
}

Result<LoadedMatrix> LoadGguf(const MappedMatrix& matrix, ThreadPool*) {
  return LoadedMatrix{.weight = matrix.views[0]};
}

}  // namespace

const WeightFormat kGgufWeights = {
    .method = "",
    .tensors = GgufTensors,
    .load = LoadGguf,
    .everywhere = true,
};

}  // namespace latte
