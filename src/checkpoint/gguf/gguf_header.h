// Reads the header of a GGUF file and checks every rule of the format (gguf.h) before it uses any
// number. Reads only the bytes that it is given, and allocates a small multiple of the header's
// size.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "latte/status.h"

#include "src/checkpoint/container/tensor_files.h"
#include "src/checkpoint/gguf/gguf_metadata.h"

namespace latte {

struct GgufHeader {
  GgufMetadata metadata;
  StoredTensors tensors;  // file_index is 0
};

// The header of a file with the content `bytes`, which must outlive the metadata. `path` is used in
// messages. Errors: kCorrupt naming path, part and rule; kUnsupported for another version, another
// byte order, and types that are not read (gguf_types.h).
[[nodiscard]] Result<GgufHeader> ParseGgufHeader(std::span<const std::byte> bytes,
                                                 const std::string& path);

}  // namespace latte
