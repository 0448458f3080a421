#include "apps/flags/values/value_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "src/base/strings.h"

namespace latte {
namespace {

// The number that `read` (of strtoll's kind) finds if it is the whole text.
template <class T, class Read>
bool ReadWhole(const std::string& text, const Read& read, T& value) {
  if (text.empty()) {
    value = T{};
    return true;
  }
  // strtoull takes "-1" for the largest number.
  if (std::is_unsigned_v<T> && text.find('-') != text.npos) return false;
  errno = 0;
  char* end = nullptr;
  const auto number = read(text.c_str(), &end);
  if (end != text.c_str() + text.size()) return false;
  if (std::is_integral_v<T> && errno == ERANGE) return false;
  value = static_cast<T>(number);
  return static_cast<decltype(number)>(value) == number || number != number;
}

// 1024^i of "k", "kb", "ki" or "kib", with i = 1 for k, 2 for m, …; 0: no unit.
uint64_t BytesOf(const std::string& unit) {
  constexpr std::string_view kPrefixes = "kmgtpe";
  if (unit == "b") return 1;
  const size_t power = kPrefixes.find(unit[0]);
  const std::string_view rest = std::string_view(unit).substr(1);
  if (power == std::string_view::npos ||
      !(rest.empty() || rest == "b" || rest == "i" || rest == "ib"))
    return 0;
  return uint64_t{1} << (10 * (power + 1));
}

}  // namespace

bool ReadValue(const std::string& text, int64_t& value) {
  return ReadWhole(
      text, [](const char* at, char** end) { return std::strtoll(at, end, 0); }, value);
}
bool ReadValue(const std::string& text, int& value) {
  return ReadWhole(
      text, [](const char* at, char** end) { return std::strtoll(at, end, 0); }, value);
}
bool ReadValue(const std::string& text, uint64_t& value) {
  return ReadWhole(
      text, [](const char* at, char** end) { return std::strtoull(at, end, 0); }, value);
}
bool ReadValue(const std::string& text, double& value) {
  return ReadWhole(
      text, [](const char* at, char** end) { return std::strtod(at, end); }, value);
}
bool ReadValue(const std::string& text, std::string& value) {
  value = text;
  return true;
}

std::optional<bool> ReadSwitch(std::string text) {
  constexpr auto kOn =
      std::to_array<std::string_view>({"", "true", "on", "yes", "enable", "t", "y", "+"});
  constexpr auto kOff =
      std::to_array<std::string_view>({"false", "off", "no", "disable", "f", "n", "-"});
  text = Lowered(text);
  if (std::find(kOn.begin(), kOn.end(), text) != kOn.end()) return true;
  if (std::find(kOff.begin(), kOff.end(), text) != kOff.end()) return false;
  int64_t number = 0;
  if (!ReadValue(text, number)) return std::nullopt;
  return number > 0;
}

std::optional<std::string> PlainBytes(std::string text) {
  text = Trimmed(text);
  size_t begin = text.size();
  while (begin > 0 && IsLetter(text[begin - 1])) --begin;
  const std::string unit = Lowered(text.substr(begin));
  const std::string number(Trimmed(std::string_view(text).substr(0, begin)));
  uint64_t count = 1;  // "K" alone
  if (text.empty() || (!number.empty() && !ReadValue(number, count))) return std::nullopt;
  if (unit.empty()) return number;
  const uint64_t bytes = BytesOf(unit);
  if (bytes == 0 || count > UINT64_MAX / bytes) return std::nullopt;
  return fmt::to_string(count * bytes);
}

}  // namespace latte
