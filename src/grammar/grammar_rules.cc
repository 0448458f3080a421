#include "src/grammar/grammar_rules.h"

#include <algorithm>

#include <fmt/format.h>

namespace latte {
namespace {

// A structural tag may hold the schemas of many functions.
constexpr size_t kMostBytes = 256 << 10;
constexpr size_t kMostTagBytes = 4 << 20;
constexpr int kMostDepth = 200;

// The deepest nesting of brackets. Brackets in strings and classes count too: a bound needs no
// more.
int Depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
  }
  return deepest;
}

}  // namespace

Status CheckGrammarSize(const Grammar& grammar) {
  const bool is_tag = grammar.syntax == GrammarSyntax::kStructuralTag;
  const size_t most = is_tag ? kMostTagBytes : kMostBytes;
  if (grammar.text.size() > most)
    return InvalidArgument(fmt::format("grammar: expected at most {} bytes of {}, found {}", most,
                                       Name(grammar.syntax), grammar.text.size()));
  if (const int depth = Depth(grammar.text); depth > kMostDepth)
    return InvalidArgument(fmt::format(
        "grammar: expected brackets that nest at most {} deep, found {}", kMostDepth, depth));
  if (grammar.text.find('\0') != std::string::npos)
    return InvalidArgument("grammar: expected text, found a byte 0");
  return {};
}

}  // namespace latte
