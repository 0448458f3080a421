// Flags, arguments and subcommands. The only door to CLI11, whose headers take seconds to compile:
// flag_set.cc alone includes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "apps/flags/command_info.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace latte {

// A flag or argument of a command. A handle: the command's FlagSet must outlive it.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag& Required();
  // Refuses values outside [least, most]. T: int or double.
  template <class T>
  Flag& Range(T least, T most);
  Flag& OneValueEach();    // `--stop A --stop B`, not `--stop A B`
  Flag& CommaSeparated();  // `--batches 1,8,16`
  Flag& Bytes();           // takes sizes such as 512MiB; K, M and G are powers of 1024
  Flag& Excludes(const Flag& other);
  // The word for the value in --help: "FILE", or the accepted values, "decode|prefill".
  Flag& Value(const std::string& word);

  bool given() const;  // on the parsed command line

 private:
  CLI::Option* option_;
};

// The flags of a command. A handle: the command line that it belongs to must outlive it.
class FlagSet {
 public:
  explicit FlagSet(CLI::App* command, std::string group = "Options")
      : command_(command), group_(std::move(group)) {}

  // The same command; its flags that are added by this handle have the heading `group` in --help.
  FlagSet Group(const std::string& group) const { return FlagSet(command_, group); }

  // A flag "--NAME" or "-n,--NAME", or an argument "NAME". `value` must outlive the parsing; it is
  // left alone when the flag is absent. The last value counts, or every one if T is a list.
  // T: a type that flag_set.cc lists.
  template <class T>
  Flag Add(const std::string& name, T& value, const std::string& help) const;
  // A flag without a value.
  Flag AddSwitch(const std::string& name, bool& value, const std::string& help) const;
  Flag AddSwitch(const std::string& name, const std::function<void()>& set,
                 const std::string& help) const;

  // A flag whose text `parse` understands; its error ends the parsing.
  Flag AddParsed(const std::string& name, const std::function<Status(const std::string&)>& parse,
                 const std::string& help) const;

  FlagSet AddCommand(const std::string& name, const std::string& help) const;
  void RequireCommand() const;  // exactly one of them
  void Hide() const;            // takes the command, but --help does not list it
  void Footer(const std::string& text) const;
  void OnChosen(const std::function<void()>& run) const;  // called while the line is parsed

  bool chosen() const;  // whether the parsed line names this command

  // The command with its options and commands, as added so far.
  CommandInfo Info() const;

 private:
  Flag Added(CLI::Option* option, bool list = false) const;

  CLI::App* command_;
  std::string group_;
};

// Sets `value` to what a flag of its type makes of `text`; `bytes`: as Flag::Bytes. False: nothing.
template <class T>
bool ReadAsFlag(const std::string& text, bool bytes, T& value);

// The command line as a whole.
class CommandLine {
 public:
  explicit CommandLine(const std::string& help);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  FlagSet flags() const { return FlagSet(app_); }
  // `words`: of CheckWords, the program's name first. Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Parse(const std::vector<std::string>& words);

 private:
  CLI::App* app_;  // owned
};

}  // namespace latte
