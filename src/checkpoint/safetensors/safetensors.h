// clang-format off
// A checkpoint in one or more safetensors files.
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

#include <string>

#include "latte/status.h"

#include "src/checkpoint/container/tensor_files.h"

namespace latte {

// Opens model.safetensors of the Hugging Face folder `dir`, or the shards that
// model.safetensors.index.json names.
// Errors: kNotFound listing all missing files at once; kCorrupt naming file, tensor and rule.
[[nodiscard]] Result<TensorFiles> OpenSafetensors(const std::string& dir);

}  // namespace latte
