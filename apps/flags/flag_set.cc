#include "apps/flags/flag_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/flags/values/value_text.h"
#include "src/base/check.h"
#include "src/base/strings.h"

namespace latte {

struct OptionNode {
  using Values = std::vector<std::string>;

  OptionInfo info;
  // Errors: kInvalidArgument naming the option.
  std::function<Status(const std::string& name, const Values&)> set = {};
  // Each value is checked, and may be rewritten. Errors: without the name.
  std::vector<std::function<Status(std::string&)>> checks = {};
  std::vector<const OptionNode*> excludes = {};
  bool separated = false;  // by commas
  Values values = {};      // of the command line

  // The name in messages.
  const std::string& name() const {
    const auto is_long = [](const std::string& own) { return own.starts_with("--"); };
    const auto found = std::find_if(info.names.begin(), info.names.end(), is_long);
    return found == info.names.end() ? info.names.front() : *found;
  }
};

struct CommandNode {
  CommandInfo info;  // without options and commands
  std::vector<std::unique_ptr<OptionNode>> options = {};
  std::vector<std::unique_ptr<CommandNode>> commands = {};
  std::function<void()> on_chosen = {};
  bool chosen = false;
};

namespace {

// The pieces that are not empty.
std::vector<std::string> SplitAt(char separator, std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view piece : Pieces(text, separator))
    if (!piece.empty()) out.emplace_back(piece);
  return out;
}

Status ReadOption(OptionNode& option) {
  OptionNode::Values values;
  for (const std::string& text : option.values)
    for (std::string& value : option.separated ? SplitAt(',', text) : OptionNode::Values{text}) {
      for (const auto& check : option.checks)
        if (const Status checked = check(value); !checked)
          return InvalidArgument(option.name() + ": " + checked.error().message);
      values.push_back(std::move(value));
    }
  // The last value counts, so that an alias of the shell may set what a user overrides.
  if (!option.info.repeatable) values = {values.back()};
  return option.set(option.name(), values);
}

Status CheckTogether(const OptionNode& option) {
  if (option.info.required && option.values.empty())
    return InvalidArgument(option.name() + " is required");
  for (const OptionNode* other : option.excludes)
    if (!option.values.empty() && !other->values.empty())
      return InvalidArgument(fmt::format("{} excludes {}", option.name(), other->name()));
  return {};
}

OptionNode* FindNode(const CommandNode& command, std::string_view name) {
  for (const auto& option : command.options)
    for (const std::string& own : option->info.names)
      if (own == name) return option.get();
  return nullptr;
}

CommandInfo InfoOf(const CommandNode& command) {
  CommandInfo out = command.info;
  for (const auto& option : command.options) out.options.push_back(option->info);
  out.options.push_back({{"-h", "--help"}, "", "print this help", "Other", false, false});
  for (const auto& below : command.commands) out.commands.push_back(InfoOf(*below));
  return out;
}

Status NotANumber(const std::string& name, const OptionNode::Values& values) {
  return InvalidArgument(
      fmt::format("{}: expected a number, found '{}'", name, fmt::join(values, ",")));
}

template <class T>
constexpr bool kIsList = false;
template <class T>
constexpr bool kIsList<std::vector<T>> = true;

template <class T>
std::string ValueWord(const T*) {
  return std::is_integral_v<T> ? "N" : std::is_floating_point_v<T> ? "NUMBER" : "TEXT";
}
template <class T>
std::string ValueWord(const std::optional<T>*) {
  return ValueWord(static_cast<const T*>(nullptr));
}
template <class T>
std::string ValueWord(const std::vector<T>*) {
  return ValueWord(static_cast<const T*>(nullptr));
}

}  // namespace

Flag& Flag::Required() {
  option_->info.required = true;
  return *this;
}

template <class T>
Flag& Flag::Range(T least, T most) {
  option_->checks.push_back([least, most](const std::string& text) -> Status {
    T value{};
    if (ReadValue(text, value) && value >= least && value <= most) return {};
    return InvalidArgument(fmt::format("expected {} to {}, found '{}'", least, most, text));
  });
  return *this;
}
template Flag& Flag::Range(int, int);
template Flag& Flag::Range(double, double);

Flag& Flag::CommaSeparated() {
  option_->separated = true;
  return *this;
}

Flag& Flag::Bytes() {
  option_->checks.push_back([](std::string& text) -> Status {
    const std::optional<std::string> number = PlainBytes(text);
    if (!number)
      return InvalidArgument(
          fmt::format("expected bytes, such as 1073741824 or 1G, found '{}'", text));
    text = *number;
    return {};
  });
  return Value("BYTES");
}

Flag& Flag::Excludes(const Flag& other) {
  option_->excludes.push_back(other.option_);
  other.option_->excludes.push_back(option_);
  return *this;
}

Flag& Flag::Value(const std::string& word) {
  option_->info.value = word;
  return *this;
}

bool Flag::given() const { return !option_->values.empty(); }

// Short names come first.
Flag FlagSet::AddOption(OptionNode option, const std::string& names,
                        const std::string& help) const {
  std::vector<std::string>& own = option.info.names;
  own = SplitAt(',', names);
  std::stable_partition(own.begin(), own.end(),
                        [](const std::string& name) { return !name.starts_with("--"); });
  for (const std::string& name : own)
    LATTE_CHECK(FindNode(*command_, name) == nullptr, "two options {}", name);
  option.info.help = help;
  option.info.group = group_;
  command_->options.push_back(std::make_unique<OptionNode>(std::move(option)));
  return Flag(command_->options.back().get());
}

template <class T>
Flag FlagSet::Add(const std::string& name, T& value, const std::string& help) const {
  OptionNode option;
  option.info.value = ValueWord(&value);
  option.info.repeatable = kIsList<T>;
  option.set = [&value](const std::string& own, const OptionNode::Values& values) -> Status {
    if (ReadValues(values, value)) return {};
    return NotANumber(own, values);
  };
  return AddOption(std::move(option), name, help);
}
template Flag FlagSet::Add(const std::string&, int&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, int64_t&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, uint64_t&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, double&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, std::string&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, std::optional<int64_t>&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, std::optional<double>&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, std::optional<std::string>&,
                           const std::string&) const;
template Flag FlagSet::Add(const std::string&, std::vector<int64_t>&, const std::string&) const;
template Flag FlagSet::Add(const std::string&, std::vector<std::string>&, const std::string&) const;

Flag FlagSet::AddSwitch(const std::string& name, bool& value, const std::string& help) const {
  OptionNode option;
  option.set = [&value](const std::string& own, const OptionNode::Values& values) -> Status {
    const std::optional<bool> on = ReadSwitch(values.back());
    if (!on) return NotANumber(own, values);
    value = *on;
    return {};
  };
  return AddOption(std::move(option), name, help);
}

Flag FlagSet::AddSwitch(const std::string& name, const std::function<void()>& set,
                        const std::string& help) const {
  OptionNode option;
  option.set = [set](const std::string& own, const OptionNode::Values& values) -> Status {
    const std::optional<bool> on = ReadSwitch(values.back());
    if (!on) return NotANumber(own, values);
    if (*on) set();
    return {};
  };
  return AddOption(std::move(option), name, help);
}

Flag FlagSet::AddParsed(const std::string& name,
                        const std::function<Status(const std::string&)>& parse,
                        const std::string& help) const {
  OptionNode option;
  option.info.value = "TEXT";
  option.set = [parse](const std::string&, const OptionNode::Values& values) {
    return parse(values.back());
  };
  return AddOption(std::move(option), name, help);
}

FlagSet FlagSet::AddCommand(const std::string& name, const std::string& help) const {
  auto command = std::make_unique<CommandNode>();
  const std::string& above = command_->info.name;
  command->info.name = above.empty() ? name : above + " " + name;
  command->info.help = help;
  command_->commands.push_back(std::move(command));
  return FlagSet(command_->commands.back().get());
}

void FlagSet::Hide() const { command_->info.hidden = true; }
void FlagSet::Footer(const std::string& text) const { command_->info.footer = text; }
void FlagSet::OnChosen(const std::function<void()>& run) const { command_->on_chosen = run; }
bool FlagSet::chosen() const { return command_->chosen; }
CommandInfo FlagSet::Info() const { return InfoOf(*command_); }

CommandLine::CommandLine(const std::string& help) : program_(std::make_unique<CommandNode>()) {
  program_->info.help = help;
}

CommandLine::~CommandLine() = default;

Status CommandLine::Set(const CheckedWords& line) {
  CommandNode* command = program_.get();
  for (const std::string& word : SplitAt(' ', line.command->name))
    for (const auto& below : command->commands)
      if (below->info.word() == word) {
        command = below.get();
        command->chosen = true;
        break;
      }
  for (const GivenValue& given : line.values)
    FindNode(*command, given.option)->values.push_back(given.value);
  for (const auto& option : command->options)
    if (!option->values.empty()) LATTE_RETURN_IF_ERROR(ReadOption(*option));
  for (const auto& option : command->options) LATTE_RETURN_IF_ERROR(CheckTogether(*option));
  if (command->on_chosen) command->on_chosen();
  return {};
}

}  // namespace latte
