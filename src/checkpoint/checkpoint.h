// A checkpoint: named tensors in one or more memory-mapped files. There are two containers: folders
// of safetensors files (safetensors/) and GGUF files (gguf/).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/container/tensor_files.h"
#include "src/tensor/tensor.h"

namespace latte {

// All tensors of a model. Immutable but for their names, thread-safe. Views stay valid as long as a
// copy of the files exists.
class Checkpoint {
 public:
  // Opens the GGUF file `path` (gguf.h), or the safetensors files of the folder `path`
  // (safetensors.h). Errors: of these.
  [[nodiscard]] static Result<Checkpoint> Open(const std::string& path);

  const StoredTensors& tensors() const { return stored_.tensors; }
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return stored_.files; }
  bool is_gguf() const { return is_gguf_; }

  // Gives the tensors the names that DeepSeek's checkpoints have, for a decoder of `layers` layers.
  // In a multi-part model, removes the prefix of the text model (such as language_model.) from its
  // tensors, and drops the tensors of the other parts. Drafting layers that are named "mtp.N."
  // become layers of the decoder's numbering: model.layers.(`layers` + N). Names of GGUF files:
  // gguf_names.h.
  void UseCommonNames(int64_t layers);

  // The tensor `name`, or nullptr.
  const StoredTensor* Find(std::string_view name) const;

  // A read-only view of the mapped bytes. Requires: dtype is one of DType (see ToDType).
  TensorView View(const StoredTensor& tensor) const;

 private:
  TensorFiles stored_;
  bool is_gguf_ = false;
};

}  // namespace latte
