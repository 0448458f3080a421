#include "src/checkpoint/config/gguf/gguf_keys.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {

double ShortDecimal(double value) {
  // A number that f32 does not hold stays as it is: JSON has no infinity, and null would mean no
  // key.
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) return value;
  const std::string digits = fmt::format("{}", static_cast<float>(value));
  double out = value;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

std::string GgufKeys::Full(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

std::string GgufKeys::Where(std::string_view key) const {
  return fmt::format("{}: metadata key '{}'", metadata_.path(), Full(key));
}

tl::unexpected<Error> GgufKeys::Bad(std::string_view key, std::string_view expected,
                                    std::string_view found) const {
  return Corrupt(fmt::format("{}: expected {}, found {}; take another copy of the model",
                             Where(key), expected, Printable(found)));
}

tl::unexpected<Error> GgufKeys::Missing(std::string_view key) const {
  return Corrupt(fmt::format("{} is missing; take a newer copy of the model", Where(key)));
}

Result<std::optional<int64_t>> GgufKeys::Find(std::string_view key) const {
  constexpr int64_t kMax = int64_t{1} << 40;
  LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> value, metadata_.Int(Full(key)));
  if (value && (*value < 0 || *value > kMax))
    return Bad(key, fmt::format("0 to {}", kMax), fmt::format("{}", *value));
  return value;
}

Result<int64_t> GgufKeys::Int(std::string_view key) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> value, Find(key));
  if (!value) return Missing(key);
  return *value;
}

Result<int64_t> GgufKeys::IntOr(std::string_view key, int64_t fallback) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> value, Find(key));
  return value.value_or(fallback);
}

Result<double> GgufKeys::Number(std::string_view key) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<double> value, metadata_.Number(Full(key)));
  if (!value) return Missing(key);
  return ShortDecimal(*value);
}

Result<double> GgufKeys::NumberOr(std::string_view key, double fallback) const {
  return Has(key) ? Number(key) : Result<double>(fallback);
}

Result<bool> GgufKeys::BoolOr(std::string_view key, bool fallback) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<bool> value, metadata_.Bool(Full(key)));
  return value.value_or(fallback);
}

Result<std::string_view> GgufKeys::StringOr(std::string_view key, std::string_view fallback) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<std::string_view> value, metadata_.String(Full(key)));
  return value.value_or(fallback);
}

Result<std::optional<std::vector<bool>>> GgufKeys::Bools(std::string_view key) const {
  return metadata_.Bools(Full(key));
}

Result<std::string_view> GgufKeys::Global(std::string_view key) const {
  LATTE_ASSIGN_OR_RETURN(const std::optional<std::string_view> value, metadata_.String(key));
  return value.value_or(std::string_view());
}

Result<std::optional<int64_t>> GgufKeys::GlobalInt(std::string_view key) const {
  return metadata_.Int(key);
}

}  // namespace latte
