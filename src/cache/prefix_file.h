// One page of one prefix as a file: all inputs that determine its bytes, then the bytes, each part
// with a checksum. docs/formats/prefix_file.md specifies the format. The functions here convert
// between bytes and values; they open no files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <xxhash.h>

#include "latte/status.h"

#include "src/cache/latent_cache.h"
#include "src/cache/page_prefix.h"

namespace latte {

// Identifies a set of weights.
using ModelKey = std::array<std::byte, 16>;

// The model and cache layout that a file belongs to.
struct PrefixFileOwner {
  ModelKey key = {};
  CacheSpec spec = {};
};

// The first bytes of every prefix file.
inline constexpr std::string_view kPrefixMagic = "LATTEPFX";

// Encodes a page. Requires: `bytes` comes from SavePage on a cache of `owner.spec`.
std::vector<std::byte> EncodePrefixFile(const PrefixFileOwner& owner, const PagePrefix& prefix,
                                        std::span<const std::byte> bytes);

// The page's bytes, a view into `file`. Errors: kCorrupt unless the file is complete and holds
// exactly this prefix of this owner; the message does not name the file.
[[nodiscard]] Result<std::span<const std::byte>> DecodePrefixFile(const PrefixFileOwner& owner,
                                                                  const PagePrefix& prefix,
                                                                  std::span<const std::byte> file);

// The file names of a prompt's pages, from the first page on. A name is a hash of everything that
// the page depends on. Next costs time in proportion to the tokens of its page.
class PrefixFileNames {
 public:
  PrefixFileNames(const PrefixFileOwner& owner, std::string_view salt);

  // The name of the next page, which holds these tokens: 32 hexadecimal digits.
  std::string Next(std::span<const int32_t> tokens);

 private:
  XXH128_hash_t hash_;  // of everything before the next page
};

// The name of the file that holds the last page of `prefix`.
std::string PrefixFileName(const PrefixFileOwner& owner, const PagePrefix& prefix);

}  // namespace latte
