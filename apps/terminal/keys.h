// Keys that a terminal sends as several bytes, of which ESC is the first: arrows, function keys,
// Alt with a character.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace latte {

struct KeyCommand {
  const wchar_t* command;  // of libedit
  std::string_view keys;   // their bytes after ESC, with a space between two keys
};

// Terminals disagree about the bytes of a key: all that are in use are here.
std::span<const KeyCommand> KeyCommands();

// The index in KeyCommands of a key, by its bytes after ESC.
std::optional<size_t> FindKeyCommand(std::string_view key);

// How many bytes of `input`, which begins with ESC, are its first key; 0: the rest of the key has
// not arrived. An ESC before another ESC is a key.
size_t KeyBytes(std::string_view input);

}  // namespace latte
