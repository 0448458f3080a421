// Parses the words of a command line with the list of commands: it suggests names for unknown ones,
// unifies the spellings of a flag, and converts flags of other programs to Latte's.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "apps/flags/command_info.h"

namespace latte {

// A value of an option or argument: "-n=2", "-n2" and "-n 2" are {"-n", "2"}.
struct GivenValue {
  std::string option;  // one of its names: "-n", "--max-new-tokens", "MODEL"
  std::string value;   // of a switch alone: empty

  bool operator==(const GivenValue&) const = default;
};

struct CheckedWords {
  std::vector<GivenValue> values;  // of the command, in their order; first a model that a flag gave
  // For the user: flags of other programs that are replaced or ignored.
  std::vector<std::string> notes;
  const CommandInfo* command = nullptr;  // that the words name, or the program itself
  bool help = false;                     // --help was given
  bool version = false;                  // --version was given
  bool incomplete = false;               // `command` needs a command after it, and none is there
};

// "latte run: --seed: expected …; see latte run --help". `what` may end with a question.
std::string UsageError(const CommandInfo& command, const std::string& what);

// `words`: as main gets them. `program` must outlive the result.
// Errors: kInvalidArgument beginning with the command, "latte run: …", for a command, an option or
// an argument that there is not, and for an option without its value; kUnsupported naming a flag of
// another program that Latte lacks.
[[nodiscard]] Result<CheckedWords> CheckWords(const std::vector<std::string>& words,
                                              const CommandInfo& program);

}  // namespace latte
