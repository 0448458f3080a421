#include "src/checkpoint/checkpoint.h"

#include <utility>

#include "src/base/check.h"
#include "src/checkpoint/gguf/gguf.h"
#include "src/checkpoint/gguf/gguf_names.h"
#include "src/checkpoint/safetensors/safetensors.h"
#include "src/checkpoint/safetensors/safetensors_names.h"

namespace latte {

Result<Checkpoint> Checkpoint::Open(const std::string& path) {
  Checkpoint out;
  out.is_gguf_ = IsGgufPath(path);
  if (out.is_gguf_) {
    LATTE_ASSIGN_OR_RETURN(GgufFiles files, GgufFiles::Open(path));
    out.stored_ = std::move(files).TakeTensors();
  } else {
    LATTE_ASSIGN_OR_RETURN(out.stored_, OpenSafetensors(path));
  }
  return out;
}

void Checkpoint::UseCommonNames(int64_t layers) {
  if (is_gguf_)
    UseNamesOfGguf(stored_.tensors);
  else
    UseNamesOfDeepseek(layers, stored_.tensors);
}

const StoredTensor* Checkpoint::Find(std::string_view name) const {
  const auto it = stored_.tensors.find(name);
  return it == stored_.tensors.end() ? nullptr : &it->second;
}

TensorView Checkpoint::View(const StoredTensor& tensor) const {
  const Result<DType> dtype = ToDType(tensor.dtype_name);
  LATTE_CHECK(dtype.has_value(), "dtype {}", tensor.dtype_name);
  LATTE_CHECK(tensor.shape.size() <= size_t{kMaxRank}, "rank {}", tensor.shape.size());
  const MappedFile& file = *stored_.files[static_cast<size_t>(tensor.file_index)];
  // TensorView has one element type for weights and buffers. The mapped pages are read-only.
  auto* data = const_cast<std::byte*>(file.bytes().data()) + tensor.begin;
  std::vector<int64_t> shape = tensor.shape;  // of blocks, if the type has them
  if (!shape.empty()) shape.back() /= ValuesPerElement(*dtype);
  return TensorView(data, *dtype, std::span<const int64_t>(shape));
}

}  // namespace latte
