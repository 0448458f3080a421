// JSON schemas as grammars in the syntax kEbnf. A schema holds for every answer; one with a part
// that cannot be enforced is refused. Answers are narrower than the schema: objects have
// no members that it does not name, unless it has additionalProperties; see
// docs/structured_output.md.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

// part: a JSON pointer ("/properties/a"): the grammar of this part of the schema only.
// Errors: kInvalidArgument for text that is no schema, or that no value matches; kUnsupported for a
// part that cannot be enforced. Messages begin with "grammar: " and name the place.
[[nodiscard]] Result<std::string> SchemaRules(const std::string& schema, std::string_view part);

}  // namespace latte
