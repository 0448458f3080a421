#include "apps/flags/command_words.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/fields/suggest.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr size_t kShownBytes = 60;

bool IsNumber(std::string_view word) {
  return word.size() > 1 && (word[1] == '.' || (word[1] >= '0' && word[1] <= '9'));
}
bool IsFlag(std::string_view word) { return word.size() > 1 && word[0] == '-' && !IsNumber(word); }

// A word that begins with a dash, taken apart.
struct OptionWord {
  std::string name;
  std::optional<std::string> value;
};

OptionWord SplitLong(const std::string& word) {
  const size_t equals = word.find('=');
  OptionWord out{word.substr(0, equals), std::nullopt};
  if (equals != std::string::npos) out.value = word.substr(equals + 1);
  std::replace(out.name.begin(), out.name.end(), '_', '-');
  return out;
}

// "-n2" and "-n=2", if `command` has an option -n with a value.
OptionWord SplitShort(const std::string& word, const CommandInfo& command) {
  const OptionInfo* option = FindOption(command, word.substr(0, 2));
  if (word.size() == 2 || option == nullptr || option->value.empty()) return {word, std::nullopt};
  return {word.substr(0, 2), word.substr(word[2] == '=' ? 3 : 2)};
}

class Checker {
 public:
  Checker(const std::vector<std::string>& words, const CommandInfo& program)
      : in_(words), command_(&program) {}

  Result<CheckedWords> Run() {
    for (at_ = 1; at_ < in_.size() && !out_.help;) {
      const std::string& word = in_[at_++];
      if (word == "--") return Rest();
      LATTE_RETURN_IF_ERROR(IsFlag(word) ? Option(word) : Plain(word));
    }
    return Done();
  }

 private:
  Result<CheckedWords> Done() {
    out_.command = command_;
    out_.incomplete = !command_->commands.empty();
    return std::move(out_);
  }

  // The words after "--" are arguments, whatever they look like.
  Result<CheckedWords> Rest() {
    while (at_ < in_.size()) LATTE_RETURN_IF_ERROR(Plain(in_[at_++]));
    return Done();
  }

  Status Option(const std::string& word) {
    const bool is_long = word.starts_with("--");
    const OptionWord flag = is_long ? SplitLong(word) : SplitShort(word, *command_);
    const OptionInfo* option = FindOption(*command_, flag.name);
    if (option == nullptr)
      return Error(fmt::format("unknown option {}{}", Printable(flag.name, kShownBytes),
                               DidYouMean(flag.name, OptionNames(*command_))));
    if (flag.name == "--help" || flag.name == "-h") {
      out_.help = true;
      return {};
    }
    out_.version = out_.version || flag.name == "--version" || flag.name == "-V" ||
                   (flag.name == "-v" && command_->name.empty());
    if (option->value.empty() || flag.value)
      return Take(*option, flag.name, flag.value.value_or(""));
    return Next(*option, flag.name);
  }

  Status CheckChoice(const OptionInfo& option, const std::string& value) const {
    const std::vector<std::string> known = ChoicesOf(option);
    if (known.empty() || value.empty() ||
        std::find(known.begin(), known.end(), value) != known.end())
      return {};
    std::string expected;
    for (size_t i = 0; i < known.size(); ++i)
      expected += fmt::format("{}{}",
                              i == 0                  ? ""
                              : i + 1 == known.size() ? " or "
                                                      : ", ",
                              known[i]);
    return Error(fmt::format("{}: expected {}, found '{}'{}", option.names.back(), expected,
                             Printable(value, kShownBytes), DidYouMean(value, known)));
  }

  // The next word is the value, but for the name of an option.
  Status Next(const OptionInfo& option, const std::string& name) {
    const bool more = at_ < in_.size();
    const bool is_option = more && in_[at_].starts_with("--") &&
                           FindOption(*command_, SplitLong(in_[at_]).name) != nullptr;
    if (!more || is_option)
      return Error(fmt::format("{}: expected a value ({}), found {}", name, option.value,
                               more ? "the option " + SplitLong(in_[at_]).name : "none"));
    return Take(option, name, in_[at_++]);
  }

  Status Take(const OptionInfo& option, const std::string& name, const std::string& value) {
    out_.values.push_back({name, value});
    return CheckChoice(option, value);
  }

  // A command or an argument.
  Status Plain(const std::string& word) {
    if (command_->commands.empty()) return Argument(word);
    const CommandInfo* command = FindCommand(*command_, word);
    if (command == nullptr)
      return Error(fmt::format("unknown command {}{}",
                               word.empty() ? "''" : Printable(word, kShownBytes),
                               DidYouMean(word, CommandNames(*command_))));
    command_ = command;
    out_.values.clear();
    return {};
  }

  // The last argument takes any number of words if its values are a list.
  Status Argument(const std::string& word) {
    std::vector<const OptionInfo*> places;
    for (const OptionInfo& option : command_->options)
      if (option.positional()) places.push_back(&option);
    const bool full = arguments_ >= places.size();
    if (full && (places.empty() || !places.back()->repeatable))
      return Error(fmt::format(
          "unexpected argument '{}'{}", Printable(word, kShownBytes),
          FindOption(*command_, "--prompt") != nullptr ? "; the prompt is given with -p" : ""));
    const OptionInfo& place = *places[full ? places.size() - 1 : arguments_];
    ++arguments_;
    out_.values.push_back({place.names.front(), word});
    return {};
  }

  Status Error(const std::string& what) const {
    return InvalidArgument(UsageError(*command_, what));
  }

  const std::vector<std::string>& in_;
  size_t at_ = 0;
  const CommandInfo* command_;
  size_t arguments_ = 0;
  CheckedWords out_;
};

}  // namespace

std::string UsageError(const CommandInfo& command, const std::string& what) {
  return fmt::format("{0}: {1}{2} see {0} --help", command.title(), what,
                     what.ends_with('?') ? "" : ";");
}

Result<CheckedWords> CheckWords(const std::vector<std::string>& words, const CommandInfo& program) {
  return Checker(words, program).Run();
}

}  // namespace latte
