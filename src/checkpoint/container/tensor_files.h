// The common interface of the containers of a checkpoint: named tensors, and the mapped files with
// them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/file.h"
#include "src/tensor/dtype.h"

namespace latte {

// One tensor, as stored in its file. dtype_name keeps the file's spelling, because an unused tensor
// may have a dtype that Latte does not compute with.
struct StoredTensor {
  std::string dtype_name;      // "BF16"
  std::vector<int64_t> shape;  // of values, also of types that are stored in blocks
  int64_t file_index = 0;      // into the files of the checkpoint
  int64_t begin = 0;           // bytes from the start of the file
  int64_t bytes = 0;
};
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

// All tensors of a model, and the mapped files that hold them.
struct TensorFiles {
  StoredTensors tensors;
  std::vector<std::shared_ptr<const MappedFile>> files;
};

// "BF16" → DType::kBF16. Errors: kUnsupported for a dtype that Latte does not compute with.
[[nodiscard]] Result<DType> ToDType(std::string_view dtype_name);

}  // namespace latte
