#include "apps/flags/aliases/rewrite.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "apps/flags/aliases/aliases.h"
#include "apps/flags/command_words.h"

namespace latte {
namespace {

bool HasDash(const std::string& word) { return word.size() > 1 && word[0] == '-'; }
// "-1" may be a value.
bool MayBeValue(const std::string& word) { return !word.starts_with("--"); }

// "--max_tokens=8" → "--max-tokens", "8". Short names have no "=", but for "-O.mode=3".
struct AliasWord {
  std::string name;
  std::optional<std::string> value;

  explicit AliasWord(const std::string& word) : name(word) {
    const size_t equals = word.find('=');
    const bool member =
        HasDash(word) && DotOfMember(std::string_view(word).substr(0, equals)) != word.npos;
    if (!word.starts_with("--") && !member) return;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    name = word.substr(0, equals);
    std::replace(name.begin(), name.end(), '_', '-');
  }
};

bool IsSwitchText(const std::string& word) {
  constexpr std::string_view kTexts[] = {"on", "off", "auto", "0", "1", "true", "false"};
  return std::find(std::begin(kTexts), std::end(kTexts), word) != std::end(kTexts);
}

std::vector<std::string> SplitAtSpaces(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += fmt::format("{}{}", out.empty() ? "" : " ", word.empty() ? "''" : word);
  return out;
}

class Rewriter {
 public:
  // `begin`: of the words after the command.
  Rewriter(const std::vector<std::string>& words, const CommandInfo& command, size_t begin)
      : in_(words), command_(command), begin_(begin), at_(begin) {}

  Result<CommandWords> Run() {
    const auto first = in_.begin() + static_cast<std::ptrdiff_t>(begin_);
    model_first_ = begin_ < in_.size() && !HasDash(in_[begin_]);
    model_given_ = model_first_ || std::any_of(first, in_.end(), [&](const auto& word) {
                     const Alias* alias = FindAlias(AliasWord(word).name, command_);
                     return alias != nullptr && alias->effect == AliasEffect::kModel;
                   });
    out_.words.assign(in_.begin(), first);
    while (at_ < in_.size()) {
      if (in_[at_] == "--") {
        out_.words.insert(out_.words.end(), in_.begin() + static_cast<std::ptrdiff_t>(at_),
                          in_.end());
        break;
      }
      LATTE_RETURN_IF_ERROR(Word());
    }
    if (!model_.empty())
      out_.words.insert(out_.words.begin() + static_cast<std::ptrdiff_t>(begin_), model_);
    const bool server = command_.name == "serve" || command_.name == "batch";
    if (!replaced_.empty() && server) out_.notes.insert(out_.notes.begin(), "read as " + replaced_);
    return std::move(out_);
  }

 private:
  Status Word() {
    const std::string& word = in_[at_];
    ++at_;
    const AliasWord flag(word);
    const Alias* alias = HasDash(word) ? FindAlias(flag.name, command_) : nullptr;
    if (alias == nullptr) {
      out_.words.push_back(flag.value ? flag.name + "=" + *flag.value : flag.name);
      const OptionInfo* own = FindOption(command_, flag.name);
      const bool value_follows = own != nullptr && !own->value.empty() && !flag.value;
      if (value_follows && at_ < in_.size()) out_.words.push_back(in_[at_++]);
      return {};
    }
    const Status status = Replace(*alias, flag);
    if (status) return {};
    return Fail(status.error().code, fmt::format("{}: {}", flag.name, status.error().message));
  }

  Status Replace(const Alias& alias, const AliasWord& flag) {
    LATTE_ASSIGN_OR_RETURN(const std::vector<std::string> values, Values(alias, flag));
    switch (alias.effect) {
      case AliasEffect::kFlag:
        return ReplaceByFlag(alias, flag, values);
      case AliasEffect::kChecked: {
        const Result<AliasValue> checked = alias.convert("", values.front());
        return checked ? Status() : tl::unexpected(checked.error());
      }
      case AliasEffect::kModel:
        return TakeModel(values.front());
      case AliasEffect::kOneRank:
        return OneRank(values.front());
      case AliasEffect::kIgnored:
        out_.notes.push_back(fmt::format("{} is ignored: {}", flag.name, alias.note));
        return {};
      case AliasEffect::kRefused:
        return Unsupported(fmt::format("not supported: {}", alias.note));
    }
    return {};
  }

  // The values of a flag, taken from the words.
  Result<std::vector<std::string>> Values(const Alias& alias, const AliasWord& flag) {
    std::vector<std::string> out;
    if (flag.value) {
      if (alias.words == AliasWords::kNone)
        return InvalidArgument(fmt::format("expected no value, found '{}'", *flag.value));
      return std::vector<std::string>{*flag.value};
    }
    const auto more = [&] { return at_ < in_.size() && MayBeValue(in_[at_]); };
    switch (alias.words) {
      case AliasWords::kNone:
        return out;
      case AliasWords::kPerhapsOne:
        if (more() && IsSwitchText(in_[at_])) out.push_back(in_[at_++]);
        return out;
      case AliasWords::kOne:
      case AliasWords::kSeveral:
        break;
    }
    if (!more()) return InvalidArgument("expected a value, found none");
    out.push_back(in_[at_++]);
    // Otherwise the last word may be MODEL.
    if (alias.words == AliasWords::kSeveral && model_given_)
      while (more() && !HasDash(in_[at_])) out.push_back(in_[at_++]);
    return out;
  }

  Status ReplaceByFlag(const Alias& alias, const AliasWord& flag,
                       const std::vector<std::string>& values) {
    std::vector<std::string> ours;
    if (values.empty()) ours = SplitAtSpaces(alias.flag);
    for (const std::string& value : values) {
      const std::string name(alias.flag);
      AliasValue converted{{name, value}};
      if (alias.convert != nullptr) {
        LATTE_ASSIGN_OR_RETURN(converted, alias.convert(name, value));
      }
      ours.insert(ours.end(), converted.words.begin(), converted.words.end());
    }
    // A flag of that name with that value is ours already. Its value may be a secret.
    const bool own = flag.name == alias.flag || FindOption(command_, flag.name) != nullptr;
    if (!own && !ours.empty())
      replaced_ += fmt::format("{}{}", replaced_.empty() ? "" : " ", Joined(ours));
    for (size_t i = 0; i < ours.size(); ++i) {
      // A value that looks like a flag, such as -1, stays a value.
      const bool joined =
          i + 1 < ours.size() && ours[i + 1].starts_with("-") && !ours[i + 1].starts_with("--");
      out_.words.push_back(joined ? ours[i] + "=" + ours[i + 1] : ours[i]);
      if (joined) ++i;
    }
    return {};
  }

  Status TakeModel(const std::string& model) {
    if (!model_.empty() || model_first_)
      return InvalidArgument(fmt::format("expected one model, found '{}' and '{}'",
                                         model_.empty() ? in_[begin_] : model_, model));
    if (model.empty()) return InvalidArgument("expected a model, found none");
    model_ = model;
    return {};
  }

  static Status OneRank(const std::string& value) {
    int ranks = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ranks);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (whole && ranks == 1) return {};
    if (!whole || ranks < 1) return InvalidArgument(fmt::format("expected 1, found '{}'", value));
    return Unsupported(fmt::format(
        "expected 1, because only --tp, --dp and --ep divide a model among ranks, found {}",
        ranks));
  }

  const std::vector<std::string>& in_;
  const CommandInfo& command_;
  const size_t begin_;
  size_t at_;
  bool model_first_ = false;
  bool model_given_ = false;  // by its place or by a flag, anywhere on the line
  std::string model_;         // of --model
  std::string replaced_;
  CommandWords out_;
};

}  // namespace

Result<CommandWords> RewriteAliases(const std::vector<std::string>& words,
                                    const CommandInfo& program) {
  const CommandInfo* command = &program;
  size_t begin = 1;
  while (begin < words.size() && !command->commands.empty()) {
    command = FindCommand(*command, words[begin]);
    if (command == nullptr) return CommandWords{words, {}};
    ++begin;
  }
  Result<CommandWords> out = Rewriter(words, *command, begin).Run();
  if (out || out.error().code != Code::kInvalidArgument) return out;
  return InvalidArgument(UsageError(*command, out.error().message));
}

}  // namespace latte
