// clang-format off
// A model in one GGUF file, or in the parts of a split one. Everything is little-endian.
//
//   "GGUF" │ u32 version │ u64 tensors │ u64 entries │ entries │ tensors │ padding │ data
//
//   string  u64 length │ bytes
//   entry   string key │ u32 type │ value; of an array: u32 type of elements │ u64 count │ elements
//   tensor  string name │ u32 dimensions │ u64 each, innermost first │ u32 type │ u64 data offset
//
// Rules: version 2 or 3; keys and names are unique; arrays hold no arrays; general.alignment is a
// power of two up to 2^20, by default 32, and the data and every tensor in it begin at a multiple;
// rows are whole blocks of their type; tensors lie in the file and do not overlap. A file that
// breaks a rule is refused.
//
// Part i of n is NAME-0000i-of-0000n.gguf and has the entries split.no (i - 1), split.count and
// split.tensors.count. The metadata of part 1 count; part 1 may have no tensors.
// Source: the specification of GGUF in the repository of ggml.
// clang-format on
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/base/file.h"
#include "src/checkpoint/container/tensor_files.h"
#include "src/checkpoint/gguf/gguf_metadata.h"
#include "src/checkpoint/gguf/gguf_parts.h"

namespace latte {

// Whether `path` is a file that is named as GGUF files are.
bool IsGgufPath(const std::string& path);

// Immutable, thread-safe. Spans and metadata stay valid as long as a copy of the files exists.
class GgufFiles {
 public:
  // Opens the file `path`; if it is a part, all parts of its set.
  // Errors: kNotFound listing missing parts; of ParseGgufHeader; kCorrupt for a file with another
  // name or content than its place in the set demands.
  [[nodiscard]] static Result<GgufFiles> Open(const std::string& path);

  const GgufMetadata& metadata() const { return metadata_; }
  // dtype_name is GgufType::name; the shape has the outermost dimension first.
  const StoredTensors& tensors() const { return stored_.tensors; }
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return stored_.files; }
  TensorFiles TakeTensors() && { return std::move(stored_); }

  // The tensor `name`, or nullptr.
  const StoredTensor* Find(std::string_view name) const;

  // The mapped blocks of a tensor of this model.
  std::span<const std::byte> Bytes(const StoredTensor& tensor) const;

 private:
  // Opens the set of the part `path`, which says that it is at `place`.
  [[nodiscard]] static Result<GgufFiles> OpenSet(const std::string& path, const GgufPlace& place);
  // Opens one more file, adds its tensors, and returns its metadata.
  [[nodiscard]] Result<GgufMetadata> Add(const std::string& path);

  GgufMetadata metadata_;
  TensorFiles stored_;
};

}  // namespace latte
