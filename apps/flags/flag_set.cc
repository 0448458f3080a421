#include "apps/flags/flag_set.h"

#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace latte {

Flag& Flag::Required() {
  option_->required();
  return *this;
}

template <class T>
Flag& Flag::Range(T least, T most) {
  option_->check([least, most](const std::string& text) -> std::string {
    T value{};
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return "";
    return fmt::format("expected {} to {}, found '{}'", least, most, text);
  });
  return *this;
}
template Flag& Flag::Range(int, int);
template Flag& Flag::Range(double, double);

Flag& Flag::OneValueEach() {
  option_->allow_extra_args(false);
  return *this;
}

Flag& Flag::CommaSeparated() {
  option_->delimiter(',');
  return *this;
}

Flag& Flag::Bytes() {
  option_->transform([](std::string text) -> std::string {
    const std::string given = text;
    try {
      if (const CLI::AsSizeValue size(/*kb_is_1000=*/false); size(text).empty()) return text;
    } catch (const CLI::ValidationError&) {  // an unknown suffix
    }
    throw CLI::ValidationError(
        fmt::format("expected bytes, such as 1073741824 or 1G, found '{}'", given));
  });
  option_->type_name("BYTES");
  return *this;
}

Flag& Flag::Excludes(const Flag& other) {
  option_->excludes(other.option_);
  return *this;
}

Flag& Flag::Value(const std::string& word) {
  option_->type_name(word);
  return *this;
}

bool Flag::given() const { return option_->count() > 0; }

namespace {

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

// `list`: every value counts; otherwise the last one does, so that an alias of the shell may set what
// a user overrides.
Flag FlagSet::Added(CLI::Option* option, bool list) const {
  option->group(group_);
  if (!list && !option->get_positional())
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return Flag(option);
}

template <class T>
Flag FlagSet::Add(const std::string& name, T& value, const std::string& help) const {
  return Added(command_->add_option(name, value, help), kIsList<T>).Value(ValueWord(&value));
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
  return Added(command_->add_flag(name, value, help));
}

Flag FlagSet::AddSwitch(const std::string& name, const std::function<void()>& set,
                        const std::string& help) const {
  return Added(command_->add_flag_callback(name, set, help));
}

Flag FlagSet::AddParsed(const std::string& name,
                        const std::function<Status(const std::string&)>& parse,
                        const std::string& help) const {
  const auto or_throw = [parse](const std::string& text) {
    const Status status = parse(text);
    if (!status) throw CLI::ValidationError(status.error().message);
  };
  return Added(command_->add_option_function<std::string>(name, or_throw, help)).Value("TEXT");
}

template <class T>
bool ReadAsFlag(const std::string& text, bool bytes, T& value) {
  try {
    CLI::App app;
    CLI::Option* option = app.add_option("--value", value);
    if (bytes) option->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
    option->add_result(text);
    option->run_callback();
  } catch (const CLI::Error&) {
    return false;
  }
  return true;
}
template bool ReadAsFlag(const std::string&, bool, int&);
template bool ReadAsFlag(const std::string&, bool, int64_t&);
template bool ReadAsFlag(const std::string&, bool, uint64_t&);
template bool ReadAsFlag(const std::string&, bool, double&);

FlagSet FlagSet::AddCommand(const std::string& name, const std::string& help) const {
  CLI::App* command = command_->add_subcommand(name, help);
  command->set_help_flag();
  command->footer("");
  return FlagSet(command);
}

void FlagSet::Hide() const { command_->group(""); }
void FlagSet::RequireCommand() const { command_->require_subcommand(1); }
void FlagSet::Footer(const std::string& text) const { command_->footer(text); }
void FlagSet::OnChosen(const std::function<void()>& run) const { command_->callback(run); }
bool FlagSet::chosen() const { return command_->parsed(); }

namespace {

OptionInfo InfoOf(const CLI::Option& option) {
  OptionInfo out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (out.names.empty()) out.names.push_back(option.get_name(/*positional=*/true));
  // Checks of the value add their descriptions, each behind a colon.
  const std::string word = option.get_type_name();
  if (option.get_items_expected_max() > 0) out.value = word.substr(0, word.find(':'));
  out.help = option.get_description();
  out.group = option.get_group();
  out.required = option.get_required();
  out.repeatable = option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeLast &&
                   option.get_items_expected_max() > 1;
  return out;
}

CommandInfo InfoOf(const CLI::App& app, const std::string& above) {
  CommandInfo out;
  // CLI11 names the program itself after the file that runs.
  if (app.get_parent() != nullptr)
    out.name = above.empty() ? app.get_name() : above + " " + app.get_name();
  out.help = app.get_description();
  out.footer = app.get_footer();
  out.hidden = app.get_parent() != nullptr && app.get_group().empty();
  for (const CLI::Option* option : app.get_options()) out.options.push_back(InfoOf(*option));
  out.options.push_back({{"-h", "--help"}, "", "print this help", "Other", false, false});
  for (const CLI::App* sub : app.get_subcommands({}))
    out.commands.push_back(InfoOf(*sub, out.name));
  return out;
}

// What CLI11 says, in the words of other messages.
std::string MessageOf(const CLI::ParseError& error) {
  const std::string text = error.what();
  constexpr std::string_view kConversion = "Could not convert: ";
  const size_t equals = text.find(" = ");
  if (!text.starts_with(kConversion) || equals == std::string::npos) return text;
  return text.substr(kConversion.size(), equals - kConversion.size()) +
         ": expected a number, found '" + text.substr(equals + 3) + "'";
}

}  // namespace

CommandInfo FlagSet::Info() const { return InfoOf(*command_, ""); }

CommandLine::CommandLine(const std::string& help) : app_(new CLI::App(help)) {
  app_->set_help_flag();
  app_->require_subcommand(1);
}

CommandLine::~CommandLine() { delete app_; }

Status CommandLine::Parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  try {
    app_->parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(MessageOf(error));
  }
  return {};
}

}  // namespace latte
