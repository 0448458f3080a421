// Suggests the intended name for a mistyped word.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace latte {

// The name of `known` that differs least from `word`: by characters that are missing, superfluous,
// different or swapped with their neighbour (Damerau and Levenshtein). At most a third of the
// longer text may differ, and at least one character is allowed to. The first of equally near
// names; none: no name is near.
std::optional<std::string> Closest(std::string_view word, std::span<const std::string> known);

// "; did you mean NAME?" for the closest name, or nothing. For the end of a message.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace latte
