// Reads keys of config.json and checks their ranges. Every error names the key, the value found and
// the expected value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

// Accepted values, inclusive.
struct IntRange {
  int64_t min;
  int64_t max;
};
struct NumberRange {
  double min;
  double max;
};

// Looks a key up in one object, or in several objects, where the first that has the key wins.
// Immutable, thread-safe. Errors of every getter: kCorrupt naming the key, the value found and the
// expected value.
class ConfigReader {
 public:
  explicit ConfigReader(Json object);
  // `where` names the objects in errors about a missing key: "rope_scaling".
  ConfigReader(std::vector<Json> objects, std::string where);

  // The value of `key`; nullopt if it is absent or null.
  std::optional<Json> Find(std::string_view key) const;
  // Whether `key` has the value null, which some keys distinguish from absence.
  bool IsNull(std::string_view key) const;

  // Required.
  [[nodiscard]] Result<int64_t> Int(std::string_view key, IntRange range) const;
  [[nodiscard]] Result<double> Number(std::string_view key, NumberRange range) const;

  // The default if absent or null.
  [[nodiscard]] Result<int64_t> IntOr(std::string_view key, IntRange range, int64_t fallback) const;
  [[nodiscard]] Result<double> NumberOr(std::string_view key, NumberRange range,
                                        double fallback) const;
  [[nodiscard]] Result<bool> BoolOr(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string> StringOr(std::string_view key, std::string fallback) const;

  // The class default if absent or null. If the class default is 0, the key is required.
  [[nodiscard]] Result<int64_t> IntOrDefault(std::string_view key, IntRange range,
                                             int64_t class_default) const;
  // The class default if absent; 0 if null, which means "none".
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
