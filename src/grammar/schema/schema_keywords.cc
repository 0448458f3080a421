#include "src/grammar/schema/schema_keywords.h"

#include <algorithm>
#include <array>

namespace latte {
namespace {

constexpr std::array<std::string_view, 30> kEnforced = {"type",
                                                        "enum",
                                                        "const",
                                                        "anyOf",
                                                        "oneOf",
                                                        "allOf",
                                                        "$ref",
                                                        "properties",
                                                        "required",
                                                        "additionalProperties",
                                                        "unevaluatedProperties",
                                                        "patternProperties",
                                                        "propertyNames",
                                                        "minProperties",
                                                        "maxProperties",
                                                        "items",
                                                        "prefixItems",
                                                        "additionalItems",
                                                        "minItems",
                                                        "maxItems",
                                                        "uniqueItems",
                                                        "minLength",
                                                        "maxLength",
                                                        "pattern",
                                                        "format",
                                                        "minimum",
                                                        "maximum",
                                                        "exclusiveMinimum",
                                                        "exclusiveMaximum",
                                                        "multipleOf"};

constexpr std::array<std::string_view, 17> kNotEnforced = {"not",
                                                           "if",
                                                           "then",
                                                           "else",
                                                           "dependentRequired",
                                                           "contains",
                                                           "minContains",
                                                           "maxContains",
                                                           "dependencies",
                                                           "dependentSchemas",
                                                           "$dynamicRef",
                                                           "$recursiveRef",
                                                           "extends",
                                                           "disallow",
                                                           "divisibleBy",
                                                           "unevaluatedItems",
                                                           "$recursiveAnchor"};

}  // namespace

bool IsConstraint(std::string_view keyword) {
  return std::ranges::find(kEnforced, keyword) != kEnforced.end() ||
         std::ranges::find(kNotEnforced, keyword) != kNotEnforced.end();
}

std::span<const std::string_view> KeywordsNotEnforced() { return kNotEnforced; }

}  // namespace latte
