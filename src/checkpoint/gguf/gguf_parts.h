// Parts of a split GGUF model: their names, and their places according to their metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "latte/status.h"

#include "src/checkpoint/gguf/gguf_metadata.h"

namespace latte {

// The name of a part: "x/model-00002-of-00005.gguf" is {"x/model", 2, 5}.
struct GgufPart {
  std::string prefix;
  int64_t number = 1;  // from 1
  int64_t count = 1;

  // The path of part `i`, from 1.
  std::string Path(int64_t i) const;
};

// nullopt if `path` does not have the form of a part's name.
std::optional<GgufPart> ParseGgufPart(const std::string& path);

// The place of a file in its set.
struct GgufPlace {
  int64_t number = 1;  // from 1
  int64_t count = 1;
  int64_t tensors = 0;  // of the whole set, if it has several parts
};

// Errors: kCorrupt naming the key that is missing, of another type or out of range.
[[nodiscard]] Result<GgufPlace> ReadGgufPlace(const GgufMetadata& metadata);

}  // namespace latte
