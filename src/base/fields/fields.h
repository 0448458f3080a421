// Names, and checks of values, derived from the list of fields (latte/fields.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/fields.h"
#include "latte/status.h"

namespace latte {

std::string FlagNames(const Field& field);  // "-n,--max-new-tokens"; empty: none
std::string LongFlag(const Field& field);   // "--max-new-tokens"; empty: none
// "LATTE_MAX_NEW_TOKENS", after the flag; a flag --no-X has LATTE_X. Empty: none.
std::string Variable(const Field& field);
std::string_view JsonKey(const Field& field);  // "stop_token_ids"; empty: none

// "a number in [0, 100]", "bf16, f16 or f32"; empty: everything is accepted.
std::string Expected(const Field& field);
std::vector<std::string_view> Choices(const Field& field);  // "bf16", "f16", "f32"

// Errors: kInvalidArgument naming `name`, what is expected and what was found. NaN is refused.
[[nodiscard]] Status CheckField(const Field& field, std::string_view name, int64_t value);
[[nodiscard]] Status CheckField(const Field& field, std::string_view name, double value);
[[nodiscard]] Status CheckField(const Field& field, std::string_view name,
                                const std::string& value);
[[nodiscard]] inline Status CheckField(const Field& field, std::string_view name, int value) {
  return CheckField(field, name, int64_t{value});
}
// Every value is accepted; entries of lists are checked by their struct.
[[nodiscard]] inline Status CheckField(const Field&, std::string_view, bool) { return {}; }
[[nodiscard]] inline Status CheckField(const Field&, std::string_view, uint64_t) { return {}; }
template <class T>
[[nodiscard]] Status CheckField(const Field&, std::string_view, const std::vector<T>&) {
  return {};
}

// The name of a field in messages: with '-' for flags, '_' for requests.
std::string NameInMessages(const Field& field, char separator);

// Checks all fields of a struct. Errors: of CheckField, for the first field that has one.
template <class T>
[[nodiscard]] Status CheckFields(const T& value, char separator) {
  Status status;
  T::VisitFields([&](const Field& field, auto member, auto...) {
    if (status) status = CheckField(field, NameInMessages(field, separator), member(value));
  });
  return status;
}

// The field of T with a name. Requires: there is one.
template <class T>
Field FieldOf(std::string_view name) {
  Field found;
  T::VisitFields([&](const Field& field, auto...) {
    if (field.name == name) found = field;
  });
  return found;
}

}  // namespace latte
