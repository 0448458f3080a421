#include "apps/flags/command_words.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/flags/aliases/rewrite.h"
#include "src/base/fields/suggest.h"
#include "src/base/strings.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr size_t kShownBytes = 60;

bool IsNumber(std::string_view word) {
  return word.size() > 1 && (word[1] == '.' || IsDigit(word[1]));
}
bool HasDash(std::string_view word) { return word.size() > 1 && word[0] == '-'; }
bool IsFlag(std::string_view word) { return HasDash(word) && !IsNumber(word); }

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += fmt::format("{}{}", out.empty() ? "" : " ", word.empty() ? "''" : word);
  return out;
}

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
      LATTE_RETURN_IF_ERROR(HasDash(word) ? Dashed(word) : Plain(word));
    }
    return Done();
  }

 private:
  Result<CheckedWords> Done() {
    out_.command = command_;
    out_.incomplete = !command_->commands.empty();
    const bool server = command_->name == "serve" || command_->name == "batch";
    if (server && !replaced_.empty())
      out_.notes.insert(out_.notes.begin(), "read as " + Joined(replaced_));
    return std::move(out_);
  }

  // The words after "--" are arguments, whatever they look like.
  Result<CheckedWords> Rest() {
    while (at_ < in_.size()) LATTE_RETURN_IF_ERROR(Plain(in_[at_++]));
    return Done();
  }

  Status Dashed(const std::string& word) {
    if (const Alias* alias = AliasOf(word); alias != nullptr) {
      const AliasWord flag(word);
      const Result<std::vector<std::string>> ours = Replace(*alias, flag);
      if (ours) return GiveWords(*ours);
      const std::string what = fmt::format("{}: {}", flag.name, ours.error().message);
      if (ours.error().code == Code::kInvalidArgument) return Error(what);
      return Fail(ours.error().code, what);
    }
    if (!IsFlag(word)) return Plain(word);
    return Option(word.starts_with("--") ? SplitLong(word) : SplitShort(word, *command_));
  }

  // The flag of another program that a word is, or null.
  const Alias* AliasOf(const std::string& word) const {
    return command_->commands.empty() ? FindAlias(AliasWord(word).name, *command_) : nullptr;
  }

  // Our words for a flag of another program. Errors: without the flag's name.
  Result<std::vector<std::string>> Replace(const Alias& alias, const AliasWord& flag) {
    LATTE_ASSIGN_OR_RETURN(
        const std::vector<std::string> values,
        AliasValues(alias, flag, std::span(in_).subspan(at_), model_first_ || model_by_flag_));
    if (!flag.value) at_ += values.size();
    std::vector<std::string> ours;
    if (alias.effect == AliasEffect::kModel) {
      LATTE_RETURN_IF_ERROR(TakeModel(values.front()));
    } else if (alias.effect == AliasEffect::kIgnored) {
      out_.notes.push_back(fmt::format("{} is ignored: {}", flag.name, alias.note));
    } else {
      LATTE_ASSIGN_OR_RETURN(ours, OurWords(alias, values));
    }
    // A flag of that name with that value is ours already. Its value may be a secret.
    if (flag.name != alias.flag && FindOption(*command_, flag.name) == nullptr)
      replaced_.insert(replaced_.end(), ours.begin(), ours.end());
    return ours;
  }

  Status GiveWords(const std::vector<std::string>& ours) {
    for (size_t i = 0; i < ours.size(); ++i) {
      const OptionInfo* option = FindOption(*command_, ours[i]);
      OptionWord own{ours[i], std::nullopt};
      if (option != nullptr && !option->value.empty() && i + 1 < ours.size()) own.value = ours[++i];
      LATTE_RETURN_IF_ERROR(Option(own));
    }
    return {};
  }

  // The model of a flag stands before all arguments.
  Status TakeModel(const std::string& model) {
    if (model_ || model_first_)
      return InvalidArgument(fmt::format("expected one model, found '{}' and '{}'",
                                         model_ ? *model_ : in_[begin_], model));
    if (model.empty()) return InvalidArgument("expected a model, found none");
    model_ = model;
    out_.values.insert(out_.values.begin(), {Places().front()->names.front(), model});
    return {};
  }

  Status Option(const OptionWord& flag) {
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
    if (command->commands.empty()) LookForModel();
    return {};
  }

  // A list of an alias may end before MODEL, which may be anywhere on the line.
  void LookForModel() {
    begin_ = at_;
    model_first_ = begin_ < in_.size() && !HasDash(in_[begin_]);
    const auto rest = std::span(in_).subspan(begin_);
    model_by_flag_ = std::any_of(rest.begin(), rest.end(), [&](const std::string& word) {
      const Alias* alias = AliasOf(word);
      return alias != nullptr && alias->effect == AliasEffect::kModel;
    });
  }

  std::vector<const OptionInfo*> Places() const {
    std::vector<const OptionInfo*> places;
    for (const OptionInfo& option : command_->options)
      if (option.positional()) places.push_back(&option);
    return places;
  }

  // The last argument takes any number of words if its values are a list.
  Status Argument(const std::string& word) {
    const std::vector<const OptionInfo*> places = Places();
    const size_t place = arguments_ + (model_by_flag_ && !model_first_ ? 1 : 0);
    const bool full = place >= places.size();
    if (full && (places.empty() || !places.back()->repeatable))
      return Error(fmt::format(
          "unexpected argument '{}'{}", Printable(word, kShownBytes),
          FindOption(*command_, "--prompt") != nullptr ? "; the prompt is given with -p" : ""));
    ++arguments_;
    out_.values.push_back({places[full ? places.size() - 1 : place]->names.front(), word});
    return {};
  }

  Status Error(const std::string& what) const {
    return InvalidArgument(UsageError(*command_, what));
  }

  const std::vector<std::string>& in_;
  size_t at_ = 0;
  const CommandInfo* command_;
  size_t begin_ = 0;  // of the words after the command
  bool model_first_ = false;
  bool model_by_flag_ = false;        // anywhere on the line
  std::optional<std::string> model_;  // of a flag
  size_t arguments_ = 0;
  std::vector<std::string> replaced_;
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
