#include "apps/flags/manual/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace latte {
namespace {

bool IsPath(const OptionInfo& option) {
  return option.value == "FILE" || option.value == "FOLDER" || option.value == "PATH";
}
bool IsModel(const OptionInfo& option) { return option.names.front() == "MODEL"; }

// Every command that runs, by its full name.
void Collect(const CommandInfo& command, std::vector<const CommandInfo*>* out) {
  for (const CommandInfo& sub : command.commands) {
    if (sub.hidden) continue;
    out->push_back(&sub);
    Collect(sub, out);
  }
}
std::vector<const CommandInfo*> AllCommands(const CommandInfo& program) {
  std::vector<const CommandInfo*> out;
  Collect(program, &out);
  return out;
}

// The long names of its options.
std::vector<std::string> LongNamesOf(const CommandInfo& command) {
  std::vector<std::string> out = OptionNames(command);
  std::erase_if(out, [](const std::string& name) { return !name.starts_with("--"); });
  return out;
}

// `program`, with the commands as the choices of `latte help COMMAND`.
CommandInfo WithCommandsAsChoices(CommandInfo program) {
  const std::string commands = fmt::format("{}", fmt::join(CommandNames(program), "|"));
  for (CommandInfo& command : program.commands)
    for (OptionInfo& option : command.options)
      if (option.positional() && option.names.front() == "COMMAND") option.value = commands;
  return program;
}

// The first argument, or null.
const OptionInfo* Argument(const CommandInfo& command) {
  for (const OptionInfo& option : command.options)
    if (option.positional()) return &option;
  return nullptr;
}

// `text` in single quotes.
std::string Quoted(std::string_view text) {
  std::string out(1, '\'');
  for (const char c : text)
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  return out + '\'';
}

// `words` with blanks between them, in single quotes.
std::string QuotedWords(const std::vector<std::string>& words) {
  return Quoted(fmt::format("{}", fmt::join(words, " ")));
}

// bash

constexpr std::string_view kBashHead =
    R"sh(# bash completion for latte; written by `latte completion bash`.
_latte_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_latte_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
_latte_models() {
  compopt -o filenames 2>/dev/null
  # bash makes words of their own of the ":" in org/name:QUANT and of what follows it.
  local typed="$cur" before=""
  if [[ $cur == ":" ]]; then
    before="$prev:" typed="$prev:"
  elif [[ $prev == ":" ]]; then
    before="${COMP_WORDS[COMP_CWORD-2]}:" typed="${COMP_WORDS[COMP_CWORD-2]}:$cur"
  fi
  mapfile -t COMPREPLY < <(
    compgen -W "$(latte completion --models 2>/dev/null)" -- "$typed"
    compgen -d -- "$typed"
  )
  COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
_latte() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command=""
  COMPREPLY=()
  # bash makes a word of its own of the "=" in --name=value.
  if [[ $cur == "=" ]]; then
    cur=""
  elif [[ $prev == "=" ]]; then
    prev="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  if ((COMP_CWORD > 1)); then command="${COMP_WORDS[1]}"; fi
)sh";

std::string BashOption(const OptionInfo& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, "|"));
  const std::vector<std::string> choices = ChoicesOf(option);
  std::string action = "return";  // any value
  if (!choices.empty())
    action = fmt::format("_latte_words {}; return", QuotedWords(choices));
  else if (IsPath(option))
    action = "_latte_files; return";
  return fmt::format("        {}) {} ;;\n", names, action);
}

// The case of a command that needs a command after it.
std::string BashCommands(const CommandInfo& command) {
  std::vector<std::string> words = CommandNames(command);
  for (std::string& name : LongNamesOf(command)) words.push_back(std::move(name));
  return fmt::format("    {})\n      _latte_words {} ;;\n", Quoted(command.name),
                     QuotedWords(words));
}

std::string BashCommand(const CommandInfo& command) {
  if (!command.commands.empty()) return BashCommands(command);
  std::string out = fmt::format("    {})\n", Quoted(command.name));
  std::string values;
  for (const OptionInfo& option : command.options)
    if (!option.positional() && !option.value.empty()) values += BashOption(option);
  if (!values.empty()) out += "      case \"$prev\" in\n" + values + "      esac\n";
  out += fmt::format("      if [[ $cur == -* ]]; then _latte_words {}\n",
                     QuotedWords(OptionNames(command)));
  const OptionInfo* argument = Argument(command);
  if (argument != nullptr) {
    const std::vector<std::string> choices = ChoicesOf(*argument);
    out += fmt::format("      else {}\n", !choices.empty()
                                              ? fmt::format("_latte_words {}", QuotedWords(choices))
                                          : IsModel(*argument) ? "_latte_models"
                                                               : "_latte_files");
  }
  return out + "      fi ;;\n";
}

std::string BashScript(const CommandInfo& program) {
  std::string out(kBashHead);
  for (const CommandInfo* command : AllCommands(program))
    if (!command->commands.empty())
      out += fmt::format(
          "  if [[ $command == {0} ]] && ((COMP_CWORD > 2)); then "
          "command=\"{0} ${{COMP_WORDS[2]}}\"; fi\n",
          command->name);
  out += "  case \"$command\" in\n" + BashCommands(program);
  for (const CommandInfo* command : AllCommands(program)) out += BashCommand(*command);
  return out + "  esac\n}\ncomplete -F _latte latte\n";
}

// zsh

constexpr std::string_view kZshHead = R"sh(#compdef latte
# zsh completion for latte; written by `latte completion zsh`.
_latte_models() {
  local -a models
  models=(${(f)"$(latte completion --models 2>/dev/null)"})
  _alternative 'models:model:compadd -a models' 'folders:folder:_files -/'
}
)sh";

// A text inside of a specification of _arguments.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshAction(const OptionInfo& option) {
  const std::vector<std::string> choices = ChoicesOf(option);
  if (!choices.empty()) return fmt::format("({})", fmt::join(choices, " "));
  if (IsModel(option)) return "_latte_models";
  return IsPath(option) || option.positional() ? "_files" : " ";
}

std::string ZshOption(const OptionInfo& option) {
  const std::string message = ZshText(ChoicesOf(option).empty() ? option.value : "value");
  if (option.positional())
    return Quoted(fmt::format("{}:{}:{}", option.repeatable ? "*" : "", option.names.front(),
                              ZshAction(option)));
  std::string out;
  for (const std::string& name : option.names) {
    // The names of an option exclude each other, unless it may be repeated.
    const std::string before =
        option.repeatable ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    // "=": the value may follow after "=", "+": without a blank.
    const char* with_value = option.value.empty() ? "" : name.starts_with("--") ? "=" : "+";
    std::string spec = fmt::format("{}{}{}[{}]", before, name, with_value, ZshText(option.help));
    if (!option.value.empty()) spec += fmt::format(":{}:{}", message, ZshAction(option));
    if (!out.empty()) out += ' ';
    out += Quoted(spec);
  }
  return out;
}

std::string ZshFunction(const CommandInfo& command) {
  std::string name = command.title();
  for (char& c : name)
    if (c == ' ') c = '_';
  return name.insert(0, 1, '_');
}

void AppendZsh(const CommandInfo& command, std::string* out) {
  for (const CommandInfo& sub : command.commands)
    if (!sub.hidden) AppendZsh(sub, out);
  std::string options;
  for (const OptionInfo& option : command.options) options += " \\\n    " + ZshOption(option);
  *out += (command.name.empty() ? std::string("_latte_program") : ZshFunction(command)) + "() {\n";
  if (command.commands.empty()) {
    *out += "  _arguments" + options + "\n}\n";
    return;
  }
  *out +=
      "  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n  local -a commands\n "
      " commands=(\n";
  for (const CommandInfo& sub : command.commands)
    if (!sub.hidden) *out += fmt::format("    {}\n", Quoted(sub.word() + ":" + ZshText(sub.help)));
  *out += "  )\n  _arguments -C" + options +
          " \\\n    '1: :->command' '*:: :->rest'\n  case $state in\n"
          "    command) _describe command commands ;;\n    rest)\n      case $words[1] in\n";
  for (const CommandInfo& sub : command.commands)
    if (!sub.hidden) *out += fmt::format("        {}) {} ;;\n", sub.word(), ZshFunction(sub));
  *out += "      esac ;;\n  esac\n}\n";
}

std::string ZshScript(const CommandInfo& program) {
  std::string out(kZshHead);
  AppendZsh(program, &out);
  return out + "_latte_program \"$@\"\n";
}

// fish

constexpr std::string_view kFishHead =
    R"sh(# fish completion for latte; written by `latte completion fish`.
# Whether the line begins with these words after the program.
function __latte_is
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; or return 1
    test $last -eq 1; or test "$words[2..$last]" = "$argv"
end
# Whether it has no others.
function __latte_is_only
    test (count (commandline -opc)) -eq (math (count $argv) + 1); and __latte_is $argv
end
complete -c latte -f
)sh";

// `text` in single quotes, inside of which a backslash quotes itself and a quote.
std::string FishQuoted(std::string_view text) {
  std::string out(1, '\'');
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string FishOption(const CommandInfo& command, const OptionInfo& option) {
  std::string out =
      fmt::format("complete -c latte -n '{} {}'",
                  command.commands.empty() ? "__latte_is" : "__latte_is_only", command.name);
  if (option.positional()) {
    const std::vector<std::string> choices = ChoicesOf(option);
    if (!choices.empty())
      return out + fmt::format(" -a {}\n", FishQuoted(fmt::format("{}", fmt::join(choices, " "))));
    if (IsModel(option)) out += " -a '(latte completion --models 2>/dev/null)'";
    return out + " -F\n";
  }
  for (const std::string& name : option.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  const std::vector<std::string> choices = ChoicesOf(option);
  if (!choices.empty())
    out += fmt::format(" -x -a {}", FishQuoted(fmt::format("{}", fmt::join(choices, " "))));
  else if (IsPath(option))
    out += " -r -F";
  else if (!option.value.empty())
    out += " -x";
  return out + fmt::format(" -d {}\n", FishQuoted(option.help));
}

void AppendFish(const CommandInfo& command, std::string* out) {
  for (const CommandInfo& sub : command.commands) {
    if (sub.hidden) continue;
    *out += fmt::format("complete -c latte -n '__latte_is_only {}' -a {} -d {}\n", command.name,
                        sub.word(), FishQuoted(sub.help));
    AppendFish(sub, out);
  }
  for (const OptionInfo& option : command.options) *out += FishOption(command, option);
}

std::string FishScript(const CommandInfo& program) {
  std::string out(kFishHead);
  AppendFish(program, &out);
  return out;
}

}  // namespace

Result<std::string> CompletionScript(std::string_view shell, const CommandInfo& program) {
  const CommandInfo completed = WithCommandsAsChoices(program);
  if (shell == "bash") return BashScript(completed);
  if (shell == "zsh") return ZshScript(completed);
  if (shell == "fish") return FishScript(completed);
  return InvalidArgument(fmt::format("SHELL: expected bash, zsh or fish, found '{}'", shell));
}

}  // namespace latte
