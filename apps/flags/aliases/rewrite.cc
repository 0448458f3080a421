#include "apps/flags/aliases/rewrite.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "src/base/strings.h"

namespace latte {
namespace {

// "-1" may be a value.
bool MayBeValue(const std::string& word) { return !word.starts_with("--"); }

bool IsSwitchText(const std::string& word) {
  constexpr std::string_view kTexts[] = {"on", "off", "auto", "0", "1", "true", "false"};
  return std::find(std::begin(kTexts), std::end(kTexts), word) != std::end(kTexts);
}

std::vector<std::string> SplitAtSpaces(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) out.emplace_back(TakePiece(&text, ' '));
  return out;
}

Status CheckOneRank(const std::string& value) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ranks);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (whole && ranks == 1) return {};
  if (!whole || ranks < 1) return InvalidArgument(fmt::format("expected 1, found '{}'", value));
  return Unsupported(fmt::format(
      "expected 1, because only --tp, --dp and --ep divide a model among ranks, found {}", ranks));
}

}  // namespace

AliasWord::AliasWord(const std::string& word) : name(word) {
  const size_t equals = word.find('=');
  const bool member =
      word.starts_with("-") && DotOfMember(std::string_view(word).substr(0, equals)) != word.npos;
  if (!word.starts_with("--") && !member) return;
  if (equals != std::string::npos) value = word.substr(equals + 1);
  name = word.substr(0, equals);
  std::replace(name.begin(), name.end(), '_', '-');
}

Result<std::vector<std::string>> AliasValues(const Alias& alias, const AliasWord& flag,
                                             std::span<const std::string> next, bool model_given) {
  if (flag.value) {
    if (alias.words == AliasWords::kNone)
      return InvalidArgument(fmt::format("expected no value, found '{}'", *flag.value));
    return std::vector<std::string>{*flag.value};
  }
  std::vector<std::string> out;
  const bool more = !next.empty() && MayBeValue(next.front());
  switch (alias.words) {
    case AliasWords::kNone:
      return out;
    case AliasWords::kPerhapsOne:
      if (more && IsSwitchText(next.front())) out.push_back(next.front());
      return out;
    case AliasWords::kOne:
    case AliasWords::kSeveral:
      break;
  }
  if (!more) return InvalidArgument("expected a value, found none");
  out.push_back(next.front());
  const bool all = alias.words == AliasWords::kSeveral && model_given;
  for (const std::string& word : all ? next.subspan(1) : next.first(0)) {
    if (word.size() > 1 && word[0] == '-') break;
    out.push_back(word);
  }
  return out;
}

Result<std::vector<std::string>> OurWords(const Alias& alias,
                                          const std::vector<std::string>& values) {
  if (alias.effect == AliasEffect::kRefused)
    return Unsupported(fmt::format("not supported: {}", alias.note));
  if (alias.effect == AliasEffect::kOneRank) {
    LATTE_RETURN_IF_ERROR(CheckOneRank(values.front()));
    return std::vector<std::string>();
  }
  if (values.empty()) return SplitAtSpaces(alias.flag);
  std::vector<std::string> out;
  const std::string name(alias.flag);
  for (const std::string& value : values) {
    AliasValue converted{{name, value}};
    if (alias.convert != nullptr) {
      LATTE_ASSIGN_OR_RETURN(converted, alias.convert(name, value));
    }
    if (alias.effect == AliasEffect::kFlag)
      out.insert(out.end(), converted.words.begin(), converted.words.end());
  }
  return out;
}

}  // namespace latte
