// The vocabulary of a GGUF file, and errors about it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/gguf/gguf_metadata.h"

namespace latte {

// The numbers of the format.
enum GgufTokenType : int64_t {
  kNormalToken = 1,
  kUnknownToken,
  kControlToken,
  kUserDefinedToken,
  kUnusedToken,
  kByteToken
};

using GgufMerge = std::pair<std::string_view, std::string_view>;

// Views into the metadata.
struct GgufVocabulary {
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;  // as many as there are tokens
  std::vector<GgufMerge> merges;

  bool IsAdded(size_t id) const {
    return types[id] >= kUnknownToken && types[id] <= kUserDefinedToken;
  }
};

// kCorrupt naming the key.
tl::unexpected<Error> BadTokenizerKey(const GgufMetadata& metadata, std::string_view key,
                                      std::string_view expected, std::string_view found);
tl::unexpected<Error> MissingTokenizerKey(const GgufMetadata& metadata, std::string_view key);

}  // namespace latte
