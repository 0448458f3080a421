// Checks of a grammar before xgrammar sees it.
#pragma once

#include <string_view>

#include "latte/status.h"

#include "src/grammar/grammar.h"

namespace latte {

// Bounds the size of the text and how deeply its brackets nest: xgrammar's readers recurse.
// Errors: kInvalidArgument.
[[nodiscard]] Status CheckGrammarSize(const Grammar& grammar);

// Whether a keyword of a schema constrains nothing that `type` does not: "title", "description", "$defs" …
[[nodiscard]] bool IsAnnotation(std::string_view keyword);

// Finds what xgrammar would ignore without a word: constraints that it does not know, and those
// next to $ref, const, enum, anyOf, oneOf and allOf.
// Errors: kInvalidArgument for text that is no JSON or no schema; kUnsupported naming the place.
[[nodiscard]] Status CheckSchemaKeywords(const std::string& schema);

}  // namespace latte
