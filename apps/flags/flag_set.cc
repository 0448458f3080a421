#include "apps/flags/flag_set.h"

#include <optional>
#include <vector>

#include <CLI/CLI.hpp>

namespace latte {

Flag& Flag::Required() {
  option_->required();
  return *this;
}

template <class T>
Flag& Flag::Range(T least, T most) {
  option_->check(CLI::Range(least, most));
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
  option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  return *this;
}

Flag& Flag::Excludes(const Flag& other) {
  option_->excludes(other.option_);
  return *this;
}

bool Flag::given() const { return option_->count() > 0; }

template <class T>
Flag FlagSet::Add(const std::string& name, T& value, const std::string& help) const {
  return Flag(command_->add_option(name, value, help));
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
  return Flag(command_->add_flag(name, value, help));
}

Flag FlagSet::AddSwitch(const std::string& name, const std::function<void()>& set,
                        const std::string& help) const {
  return Flag(command_->add_flag_callback(name, set, help));
}

Flag FlagSet::AddParsed(const std::string& name,
                        const std::function<Status(const std::string&)>& parse,
                        const std::string& help) const {
  const auto or_throw = [parse](const std::string& text) {
    const Status status = parse(text);
    if (!status) throw CLI::ValidationError(status.error().message);
  };
  return Flag(command_->add_option_function<std::string>(name, or_throw, help));
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
  return FlagSet(command_->add_subcommand(name, help));
}

void FlagSet::Hide() const { command_->group(""); }
void FlagSet::RequireCommand() const { command_->require_subcommand(1); }
void FlagSet::Footer(const std::string& text) const { command_->footer(text); }
void FlagSet::OnChosen(const std::function<void()>& run) const { command_->callback(run); }
bool FlagSet::chosen() const { return command_->parsed(); }

CommandLine::CommandLine(const std::string& help, const std::string& version)
    : app_(new CLI::App(help)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->failure_message([](const CLI::App* chosen, const CLI::Error& error) {
    // A value that was pasted into the command line may be long.
    return InvalidArgument(CLI::FailureMessage::simple(chosen, error)).value().message;
  });
}

CommandLine::~CommandLine() { delete app_; }

int CommandLine::Parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  try {
    app_->parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : 2;
  }
  return -1;
}

}  // namespace latte
