#include "apps/terminal/keys.h"

#include "src/base/strings.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr char kEscape = '\x1b';

constexpr KeyCommand kCommands[] = {
    {L"latte-paste", "[200~"},
    {L"ed-prev-history", "[A OA"},
    {L"ed-next-history", "[B OB"},
    {L"ed-next-char", "[C OC"},
    {L"ed-prev-char", "[D OD"},
    {L"ed-move-to-beg", "[H OH [1~ [7~"},
    {L"ed-move-to-end", "[F OF [4~ [8~"},
    {L"ed-delete-next-char", "[3~"},
    {L"em-next-word", "[1;5C [1;3C [5C Oc f F"},
    {L"ed-prev-word", "[1;5D [1;3D [5D Od b B"},
    {L"em-delete-next-word", "[3;5~ [3;3~ [3^ d D"},
    {L"ed-delete-prev-word", "\x7f \b"},
    {L"ed-search-prev-history", "p P"},
    {L"ed-search-next-history", "n N"},
    {L"em-capitol-case", "c C"},
    {L"em-lower-case", "l L"},
    {L"em-upper-case", "u U"},
};

bool HasWord(std::string_view words, std::string_view word) {
  while (!words.empty())
    if (TakePiece(&words, ' ') == word) return true;
  return false;
}

// The size of a key whose parameters begin at `from`. A byte that no key has ends it: it belongs to
// the next one.
size_t ParameterizedBytes(std::string_view input, size_t from) {
  for (size_t i = from; i < input.size(); ++i) {
    const char c = input[i];
    if ((c >= '@' && c <= '~') || c == '$') return i + 1;  // '$': rxvt with Shift
    if (c < ' ' || c > '~') return i;
  }
  return 0;
}

}  // namespace

std::span<const KeyCommand> KeyCommands() { return kCommands; }

std::optional<size_t> FindKeyCommand(std::string_view key) {
  for (size_t i = 0; i < std::size(kCommands); ++i)
    if (HasWord(kCommands[i].keys, key)) return i;
  return std::nullopt;
}

size_t KeyBytes(std::string_view input) {
  if (input.size() < 2) return 0;
  if (input[1] == kEscape) return 1;
  if (input.starts_with("\x1b[[")) return input.size() < 4 ? 0 : 4;  // F1 to F5 of Linux's console
  if (input[1] == '[' || input[1] == 'O') return ParameterizedBytes(input, 2);
  const Utf8Step step = DecodeUtf8(input.substr(1));
  return step.cut_off ? 0 : 1 + static_cast<size_t>(step.bytes);
}

}  // namespace latte
