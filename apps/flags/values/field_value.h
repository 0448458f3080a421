// A field's value of any type, and its texts on command lines and in variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "latte/fields.h"
#include "latte/status.h"

namespace latte {

using LogitBias = std::vector<std::pair<int32_t, float>>;
using FieldValue = std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*,
                                std::vector<std::string>*, LogitBias*>;

// "5:1.5,7:-100" → tokens and what is added to their logits.
// Errors: kInvalidArgument quoting the piece that is no such pair.
[[nodiscard]] Result<LogitBias> ParseLogitBias(std::string_view text);

// "int8 or bf16": the first means true. None for other texts.
std::optional<bool> ParseChoice(const Field& field, std::string_view text);

// Sets a value to a text. False: it is none of this type.
bool ReadFieldText(const Field& field, const std::string& text, FieldValue value);

// The texts of this type, in words: "a whole number".
std::string KindText(const Field& field, FieldValue value);

}  // namespace latte
