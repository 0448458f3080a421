// Keys of config.json, read with their ranges, so that every refusal says key, value and what was
// expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

// Accepted values, both ends included.
struct IntRange {
  int64_t min;
  int64_t max;
};
struct NumberRange {
  double min;
  double max;
};

// Looks a key up in one object, or in several of which the first that has the key wins.
// Immutable, thread-safe. Errors of every getter: kCorrupt naming the key, the value and what was
// expected.
class ConfigReader {
 public:
  explicit ConfigReader(Json object);
  // `where` names the objects together when a key is in none of them: "rope_scaling".
  ConfigReader(std::vector<Json> objects, std::string where);

  // The value of `key`; nothing when it is absent or null.
  std::optional<Json> Find(std::string_view key) const;
  // Whether `key` is there with the value null, which is a statement where absence is none.
  bool IsNull(std::string_view key) const;

  // Required.
  [[nodiscard]] Result<int64_t> Int(std::string_view key, IntRange range) const;
  [[nodiscard]] Result<double> Number(std::string_view key, NumberRange range) const;

  // The default when absent or null.
  [[nodiscard]] Result<int64_t> IntOr(std::string_view key, IntRange range, int64_t fallback) const;
  [[nodiscard]] Result<double> NumberOr(std::string_view key, NumberRange range,
                                        double fallback) const;
  [[nodiscard]] Result<bool> BoolOr(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string> StringOr(std::string_view key, std::string fallback) const;

  // The class default when absent or null; where that is 0, the key is required.
  [[nodiscard]] Result<int64_t> IntOrDefault(std::string_view key, IntRange range,
                                             int64_t class_default) const;
  // The class default when absent; 0 when null, which says "there is none".
  [[nodiscard]] Result<int64_t> IntOrNone(std::string_view key, IntRange range,
                                          int64_t class_default) const;

  // kCorrupt "<source>: '<key>': expected <expected>, found <found>".
  tl::unexpected<Error> Bad(std::string_view key, std::string_view expected,
                            std::string_view found) const;

 private:
  std::string PathOf(std::string_view key) const;
  tl::unexpected<Error> Missing(std::string_view key) const;

  std::vector<Json> objects_;
  std::string where_;
};

}  // namespace latte
