// clang-format off
// A checkpoint: named tensors in one or more memory-mapped safetensors files.
//
//   u64 N, little-endian │ N bytes of JSON                              │ data
//                        │ {"name": {"dtype": "BF16", "shape": [2, 3],  │
//                        │           "data_offsets": [begin, end]}, …,  │
//                        │  "__metadata__": {…}}                        │
//
// Rules: sorted by begin, the offsets cover the data section without gaps and overlaps; the JSON
// starts with '{'; N ≤ 100,000,000. A file that breaks a rule is refused. In a sharded checkpoint,
// model.safetensors.index.json names the file of every tensor.
// Source: specification of the format (huggingface/safetensors).
// clang-format on
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/file.h"
#include "src/tensor/tensor.h"

namespace latte {

// One tensor, as stored in its file. dtype_name keeps the file's spelling, because an unused tensor
// may have a dtype that Latte does not compute with.
struct StoredTensor {
  std::string dtype_name;  // "BF16"
  std::vector<int64_t> shape;
  int64_t file_index = 0;  // into Checkpoint::files()
  int64_t begin = 0;       // bytes from the start of the file
  int64_t bytes = 0;
};

// All tensors of a Hugging Face folder. Immutable, thread-safe. Views stay valid as long as a copy
// of the files exists.
class Checkpoint {
 public:
  // Opens model.safetensors, or the shards that model.safetensors.index.json names.
  // Errors: kNotFound listing all missing files at once; kCorrupt naming file, tensor and rule.
  [[nodiscard]] static Result<Checkpoint> Open(const std::string& dir);

  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }

  // Gives the tensors the names that DeepSeek's checkpoints have, for a decoder of `layers` layers.
  // In a multi-part model, removes the prefix of the text model (such as language_model.) from its
  // tensors, and drops the tensors of the other parts. Drafting layers that other writers keep under
  // "mtp.N." become layers of the decoder's numbering: model.layers.(`layers` + N).
  void UseCommonNames(int64_t layers);

  // The tensor `name`, or nullptr.
  const StoredTensor* Find(std::string_view name) const;

  // A read-only view of the mapped bytes. Requires: dtype is one of DType (see ToDType).
  TensorView View(const StoredTensor& tensor) const;

 private:
  void StripTextModelPrefix();
  void NumberDraftingLayers(int64_t layers);

  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

// "BF16" → DType::kBF16. Errors: kUnsupported for a dtype that Latte does not compute with.
[[nodiscard]] Result<DType> ToDType(std::string_view dtype_name);

}  // namespace latte
