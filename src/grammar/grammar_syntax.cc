#include <algorithm>
#include <array>
#include <utility>

#include "src/grammar/grammar.h"

namespace latte {
namespace {

constexpr std::array<std::pair<std::string_view, GrammarSyntax>, 5> kNames = {{
    {"json-schema", GrammarSyntax::kJsonSchema},
    {"regex", GrammarSyntax::kRegex},
    {"ebnf", GrammarSyntax::kEbnf},
    {"lark", GrammarSyntax::kLark},
    {"structural-tag", GrammarSyntax::kStructuralTag},
}};

}  // namespace

std::string_view Name(GrammarSyntax syntax) {
  return std::ranges::find(kNames, syntax, &std::pair<std::string_view, GrammarSyntax>::second)
      ->first;
}

std::optional<GrammarSyntax> FindGrammarSyntax(std::string_view name) {
  for (const auto& [known, syntax] : kNames)
    if (known == name) return syntax;
  return std::nullopt;
}

}  // namespace latte
