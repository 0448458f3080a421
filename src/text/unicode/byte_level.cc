#include "src/text/unicode/byte_level.h"

#include <array>

#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr char32_t kEnd = 0x100 + 68;  // one past the last character

constexpr bool StandsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Tables {
  std::array<char, 512> spelling{};     // two bytes each; one byte for ASCII
  std::array<int16_t, kEnd> byte_of{};  // -1: not in the alphabet
};

constexpr Tables MakeTables() {
  Tables tables;
  tables.byte_of.fill(-1);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t c = StandsForItself(byte) ? byte : next++;
    tables.byte_of[c] = static_cast<int16_t>(byte);
    tables.spelling[2 * byte] = static_cast<char>(c < 0x80 ? c : 0xC0 | c >> 6);
    tables.spelling[2 * byte + 1] = static_cast<char>(c < 0x80 ? 0 : 0x80 | (c & 0x3F));
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

std::string_view ByteAlphabetSymbol(uint8_t byte) {
  const char* spelling = &kTables.spelling[size_t{2} * byte];
  return {spelling, spelling[1] == 0 ? size_t{1} : size_t{2}};
}

bool DecodeByteAlphabet(std::string_view text, std::string* bytes) {
  bytes->clear();
  while (!text.empty()) {
    const Utf8Step step = DecodeUtf8(text);
    if (!step.valid || step.code_point >= kEnd || kTables.byte_of[step.code_point] < 0)
      return false;
    bytes->push_back(static_cast<char>(kTables.byte_of[step.code_point]));
    text.remove_prefix(static_cast<size_t>(step.bytes));
  }
  return true;
}

}  // namespace latte
