// The byte-level alphabet of GPT-2: tokenizer.json spells each of the 256 bytes as one visible
// character. Printable Latin-1 stands for itself; the other 68 bytes follow from U+0100 on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace latte {

// The UTF-8 spelling of a byte. Valid for the life of the process.
std::string_view ByteAlphabetSymbol(uint8_t byte);

// Decodes the alphabet into `bytes`. Returns false, with `bytes` unspecified, if a character of
// `text` is not in the alphabet.
bool DecodeByteAlphabet(std::string_view text, std::string* bytes);

}  // namespace latte
