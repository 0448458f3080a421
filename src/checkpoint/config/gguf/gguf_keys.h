// Reads the keys of one architecture from the metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/gguf/gguf_metadata.h"

namespace latte {

// The number with the fewest digits that is the same as `value` in f32: files have 1e-6 and 0.707
// as f32, config.json has their digits.
double ShortDecimal(double value);

// `key` is without the name of the architecture: "block_count" is "deepseek2.block_count". Errors
// of every getter: kCorrupt naming the key that is missing, of another type or out of range.
class GgufKeys {
 public:
  // Both must outlive the keys.
  GgufKeys(const GgufMetadata& metadata, const std::string& architecture)
      : metadata_(metadata), architecture_(architecture) {}

  const std::string& architecture() const { return architecture_; }
  const std::string& path() const { return metadata_.path(); }
  bool Has(std::string_view key) const { return metadata_.Find(Full(key)) != nullptr; }
  // "m.gguf: metadata key 'deepseek2.block_count'", for messages.
  std::string Where(std::string_view key) const;
  tl::unexpected<Error> Bad(std::string_view key, std::string_view expected,
                            std::string_view found) const;

  // Integers from 0 to 2^40.
  [[nodiscard]] Result<int64_t> Int(std::string_view key) const;
  [[nodiscard]] Result<int64_t> IntOr(std::string_view key, int64_t fallback) const;
  // ShortDecimal of floating-point numbers.
  [[nodiscard]] Result<double> Number(std::string_view key) const;
  [[nodiscard]] Result<double> NumberOr(std::string_view key, double fallback) const;
  [[nodiscard]] Result<bool> BoolOr(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string_view> StringOr(std::string_view key,
                                                  std::string_view fallback) const;
  // An array; nullopt if the key is absent.
  [[nodiscard]] Result<std::optional<std::vector<bool>>> Bools(std::string_view key) const;

  // Keys of no architecture: the whole key; an absent string is empty.
  [[nodiscard]] Result<std::string_view> Global(std::string_view key) const;
  [[nodiscard]] Result<std::optional<int64_t>> GlobalInt(std::string_view key) const;

 private:
  std::string Full(std::string_view key) const;
  tl::unexpected<Error> Missing(std::string_view key) const;
  Result<std::optional<int64_t>> Find(std::string_view key) const;

  const GgufMetadata& metadata_;
  const std::string& architecture_;
};

}  // namespace latte
