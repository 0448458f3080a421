// The meaning of a flag of another program (aliases.h) on a command line.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "latte/status.h"

#include "apps/flags/aliases/aliases.h"

namespace latte {

// A word that may be such a flag, taken apart: "--max_tokens=8" is --max-tokens with 8. Short names
// have no "=", but for "-O.mode=3".
struct AliasWord {
  std::string name;
  std::optional<std::string> value;

  explicit AliasWord(const std::string& word);
};

// The values of a flag: its own, or the first of `next`, the words after it. A list takes several
// of them if the line has a model elsewhere (`model_given`); otherwise the last word may be MODEL.
// Errors: kInvalidArgument without the flag's name.
[[nodiscard]] Result<std::vector<std::string>> AliasValues(const Alias& alias,
                                                           const AliasWord& flag,
                                                           std::span<const std::string> next,
                                                           bool model_given);

// Our words for an alias of kFlag, kChecked, kOneRank or kRefused with these values: names of
// flags, each followed by its value if it takes one. Errors: kInvalidArgument and kUnsupported,
// without the flag's name.
[[nodiscard]] Result<std::vector<std::string>> OurWords(const Alias& alias,
                                                        const std::vector<std::string>& values);

}  // namespace latte
