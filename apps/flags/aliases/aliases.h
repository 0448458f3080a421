// The table of flags of other programs and their meaning in Latte.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "apps/flags/command_info.h"

namespace latte {

// The words that follow a flag on the command line.
enum class AliasWords { kNone, kOne, kSeveral, kPerhapsOne };

// The commands that take a name.
enum class AliasScope {
  kServeAndBatch,
  kServe,
  kAll,  // that have the flag; if the alias stands for none: that have MODEL
};

// The effect that a flag of another program has here.
enum class AliasEffect {
  kFlag,     // a flag of Latte
  kModel,    // MODEL
  kChecked,  // nothing; `convert` refuses values that Latte lacks
  kIgnored,  // nothing, and that changes no answer; the note says why
  kOneRank,  // 1 is accepted, a larger number is refused
  kRefused,  // an error; the note says why, and what to do instead
};

// What becomes of an alias's value.
struct AliasValue {
  std::vector<std::string> words;  // of our command line; none: our default stays
};
// Errors: kInvalidArgument and kUnsupported, without the alias's name.
using ConvertAlias = Result<AliasValue> (*)(const std::string& flag, const std::string& value);

struct Alias {
  std::string_view names;  // "--block-size,--page-size"
  std::string_view of;     // the servers that have them
  AliasWords words = AliasWords::kOne;
  AliasEffect effect = AliasEffect::kIgnored;
  // Of kFlag: our words, such as "--attention decompressed".
  std::string_view flag = "";
  ConvertAlias convert = nullptr;  // of kChecked, and of kFlag where the value is written otherwise
  std::string_view note = "";      // one line, ASCII
  AliasScope scope = AliasScope::kServeAndBatch;
};

std::span<const Alias> Aliases();

// Where the member's name begins in vLLM's "--speculative-config.method"; npos: the name of no
// member.
size_t DotOfMember(std::string_view name);

// The first alias with this name that `command` takes, or null. A name that is an option of the
// command itself is an alias only of that option. Underscores count as dashes. A member of an
// object that is ignored or refused is that object.
const Alias* FindAlias(std::string_view name, const CommandInfo& command);

std::vector<std::string_view> NamesOf(const Alias& alias);

// The table in Markdown, for docs/options.md.
std::string AliasesDocument();

}  // namespace latte
