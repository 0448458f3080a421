// The keywords of JSON schemas that constrain a value.
#pragma once

#include <span>
#include <string_view>

namespace latte {

// Whether a keyword constrains values: "pattern", "not", but not "title" or one that is unknown.
[[nodiscard]] bool IsConstraint(std::string_view keyword);

// Constraints that cannot be enforced: "not", "if", "contains" …
std::span<const std::string_view> KeywordsNotEnforced();

}  // namespace latte
