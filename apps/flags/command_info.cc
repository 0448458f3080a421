#include "apps/flags/command_info.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "src/base/strings.h"

namespace latte {
namespace {

// Groups in the order of --help. A group that has no place here is between the two lists.
constexpr std::string_view kFirst[] = {
    "Model",   "Prompt",   "Input",    "Options", "Server",
    "Trace",   "Sampling", "Stopping", "Output",  "Structured answers",
    "Address", "API"};
constexpr std::string_view kLast[] = {"Computation", "Memory",      "Access",       "Log",
                                      "Limits",      "Speculation", "Prefix cache", "Queue",
                                      "Ranks",       "Expert",      "Other"};

size_t PlaceOf(std::string_view group) {
  const auto* first = std::find(std::begin(kFirst), std::end(kFirst), group);
  if (first != std::end(kFirst)) return static_cast<size_t>(first - std::begin(kFirst));
  const auto* last = std::find(std::begin(kLast), std::end(kLast), group);
  const size_t between = std::size(kFirst);
  if (last == std::end(kLast)) return between;
  return between + 1 + static_cast<size_t>(last - std::begin(kLast));
}

}  // namespace

const OptionInfo* FindOption(const CommandInfo& command, std::string_view name) {
  for (const OptionInfo& option : command.options)
    for (const std::string& own : option.names)
      if (own == name && !option.positional()) return &option;
  return nullptr;
}

const CommandInfo* FindCommand(const CommandInfo& above, std::string_view word) {
  for (const CommandInfo& command : above.commands)
    if (command.word() == word) return &command;
  return nullptr;
}

std::vector<std::string> OptionNames(const CommandInfo& command) {
  std::vector<std::string> out;
  for (const OptionInfo& option : command.options)
    if (!option.positional()) out.insert(out.end(), option.names.begin(), option.names.end());
  return out;
}

std::vector<std::string> CommandNames(const CommandInfo& above) {
  std::vector<std::string> out;
  for (const CommandInfo& command : above.commands)
    if (!command.hidden) out.push_back(command.word());
  return out;
}

std::vector<std::string> ChoicesOf(const OptionInfo& option) {
  const std::vector<std::string_view> pieces = Pieces(option.value, '|');
  if (pieces.size() == 1) return {};
  return {pieces.begin(), pieces.end()};
}

std::vector<OptionGroup> GroupsOf(const CommandInfo& command) {
  std::vector<OptionGroup> out;
  for (const OptionInfo& option : command.options) {
    if (option.positional()) continue;
    const auto same = [&](const OptionGroup& group) { return group.name == option.group; };
    auto group = std::find_if(out.begin(), out.end(), same);
    if (group == out.end()) group = out.insert(out.end(), {option.group, {}});
    group->options.push_back(&option);
  }
  std::stable_sort(out.begin(), out.end(), [](const OptionGroup& a, const OptionGroup& b) {
    return PlaceOf(a.name) < PlaceOf(b.name);
  });
  return out;
}

}  // namespace latte
