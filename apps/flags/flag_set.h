// Flags, arguments and subcommands, and their values from a command line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "apps/flags/command_info.h"
#include "apps/flags/command_words.h"

namespace latte {

struct OptionNode;   // an option and its values
struct CommandNode;  // a command with its options and commands

// A flag or argument of a command. A handle: the command's FlagSet must outlive it.
class Flag {
 public:
  explicit Flag(OptionNode* option) : option_(option) {}

  Flag& Required();
  // Refuses values outside [least, most]. T: int or double.
  template <class T>
  Flag& Range(T least, T most);
  Flag& CommaSeparated();  // `--batches 1,8,16`
  Flag& Bytes();           // takes sizes such as 512MiB; K, M and G are powers of 1024
  Flag& Excludes(const Flag& other);
  // The word for the value in --help: "FILE", or the accepted values, "decode|prefill".
  Flag& Value(const std::string& word);

  bool given() const;  // on the command line

 private:
  OptionNode* option_;
};

// The flags of a command. A handle: the command line that it belongs to must outlive it.
class FlagSet {
 public:
  explicit FlagSet(CommandNode* command, std::string group = "Options")
      : command_(command), group_(std::move(group)) {}

  // The same command; its flags that are added by this handle have the heading `group` in --help.
  FlagSet Group(const std::string& group) const { return FlagSet(command_, group); }

  // A flag "--NAME" or "-n,--NAME", or an argument "NAME". `value` must outlive the line; it is
  // left alone when the flag is absent. The last value counts, or every one if T is a list.
  // T: a type that flag_set.cc lists.
  template <class T>
  Flag Add(const std::string& name, T& value, const std::string& help) const;
  // A flag without a value.
  Flag AddSwitch(const std::string& name, bool& value, const std::string& help) const;
  Flag AddSwitch(const std::string& name, const std::function<void()>& set,
                 const std::string& help) const;

  // A flag whose text `parse` understands; its error is that of the line.
  Flag AddParsed(const std::string& name, const std::function<Status(const std::string&)>& parse,
                 const std::string& help) const;

  FlagSet AddCommand(const std::string& name, const std::string& help) const;
  void Hide() const;  // takes the command, but --help does not list it
  void Footer(const std::string& text) const;
  void OnChosen(const std::function<void()>& run) const;  // called once its flags are set

  bool chosen() const;  // whether the line names this command

  // The command with its options and commands, as added so far.
  CommandInfo Info() const;

 private:
  Flag AddOption(OptionNode option, const std::string& names, const std::string& help) const;

  CommandNode* command_;
  std::string group_;
};

// The command line as a whole.
class CommandLine {
 public:
  explicit CommandLine(const std::string& help);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  FlagSet flags() const { return FlagSet(program_.get()); }
  // Sets the flags of the command that was chosen. Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Set(const CheckedWords& line);

 private:
  std::unique_ptr<CommandNode> program_;
};

}  // namespace latte
