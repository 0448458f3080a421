// Values as they are written on a command line and in variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace latte {

// Each sets `value` to the value of `text`; false if there is none, or if it is too large. Whole
// numbers may be hexadecimal (0x10) or octal (010). An empty text is 0.
bool ReadValue(const std::string& text, int& value);
bool ReadValue(const std::string& text, int64_t& value);
bool ReadValue(const std::string& text, uint64_t& value);
bool ReadValue(const std::string& text, double& value);
bool ReadValue(const std::string& text, std::string& value);

// "1", "true", "on", "yes", … and "0", "false", "off", "no", …; an empty text is true, as a switch
// alone.
std::optional<bool> ReadSwitch(std::string text);

// "512MiB", "1G" or "1g" as a plain number; all units are powers of 1024. None: no such text, or
// too large a number.
std::optional<std::string> PlainBytes(std::string text);

// A flag's value from the texts that it was given: the last one, or all for a list. Requires: one
// or more texts.
template <class T>
bool ReadValues(const std::vector<std::string>& texts, T& value) {
  return ReadValue(texts.back(), value);
}
template <class T>
bool ReadValues(const std::vector<std::string>& texts, std::optional<T>& value) {
  return ReadValue(texts.back(), value.emplace());
}
template <class T>
bool ReadValues(const std::vector<std::string>& texts, std::vector<T>& value) {
  value.clear();
  for (const std::string& text : texts)
    if (!ReadValue(text, value.emplace_back())) return false;
  return true;
}

// Sets `value` to what a flag of its type makes of `text`; `bytes`: as Flag::Bytes. False: nothing.
template <class T>
bool ReadAsFlag(const std::string& text, bool bytes, T& value) {
  const std::optional<std::string> plain = bytes ? PlainBytes(text) : text;
  return plain && ReadValue(*plain, value);
}

}  // namespace latte
