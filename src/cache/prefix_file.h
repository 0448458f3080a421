// One page of one prefix as a file: what it depends on in full, then its bytes, each with a
// checksum. docs/formats/prefix_file.md draws it. Opens no files: bytes in, bytes out.
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

// What tells one set of weights from another.
using ModelKey = std::array<std::byte, 16>;

// Whose pages a file may hold.
struct PrefixFileOwner {
  ModelKey key = {};
  CacheSpec spec = {};
};

// What every such file begins with.
inline constexpr std::string_view kPrefixMagic = "LATTEPFX";

// Requires: bytes of SavePage on a cache of `owner.spec`.
std::vector<std::byte> EncodePrefixFile(const PrefixFileOwner& owner, const PagePrefix& prefix,
                                        std::span<const std::byte> bytes);

// The page's bytes, a part of `file`. Errors: kCorrupt, unless the file is whole and holds exactly
// this prefix of this owner; the message does not name the file.
[[nodiscard]] Result<std::span<const std::byte>> DecodePrefixFile(const PrefixFileOwner& owner,
                                                                  const PagePrefix& prefix,
                                                                  std::span<const std::byte> file);

// Names of the files of a prompt's pages, from its first on. Each is a hash of all that its page
// depends on. Cost: of every page, its own tokens.
class PrefixFileNames {
 public:
  PrefixFileNames(const PrefixFileOwner& owner, std::string_view salt);

  // The name of the next page, which holds these tokens: 32 hexadecimal digits.
  std::string Next(std::span<const int32_t> tokens);

 private:
  XXH128_hash_t hash_;  // of what lies before the next page
};

// The name of the file that holds the last page of `prefix`.
std::string PrefixFileName(const PrefixFileOwner& owner, const PagePrefix& prefix);

}  // namespace latte
