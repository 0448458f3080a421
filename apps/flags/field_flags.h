// Flags that come from a list of fields (latte/fields.h), and the environment variables that stand
// in for them. The order is: flag, variable, default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "latte/fields.h"
#include "latte/status.h"

#include "apps/flags/flag_set.h"
#include "src/base/fields/fields.h"

namespace latte {

using LogitBias = std::vector<std::pair<int32_t, float>>;
using FieldValue = std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*,
                                std::vector<std::string>*, LogitBias*>;

// Adds the flag of `field`; it sets `value`, whose present value the help shows as the default.
Flag AddField(const FlagSet& app, const Field& field, FieldValue value);

// Whether the field has a variable that is set. An empty one counts as unset.
bool VariableIsSet(const Field& field);

// Sets `value` to the text of the field's variable, if that is set.
// Errors: kInvalidArgument naming the variable.
[[nodiscard]] Status ReadVariable(const Field& field, FieldValue value);

// "5:1.5,7:-100" → tokens and what is added to their logits.
// Errors: kInvalidArgument quoting the piece that is no such pair.
[[nodiscard]] Result<LogitBias> ParseLogitBias(std::string_view text);

// The error of a check that begins with a field's name ("top_p: …") begins with the flag instead
// ("--top-p: …"), or with the variable that set the field. Other errors stay.
[[nodiscard]] Status NameSource(Status status, const std::vector<Field>& fields,
                                const std::vector<std::string>& from_variables);

// The flags of some fields of T.
template <class T>
class StructFlags {
 public:
  // Of flags that are not given, as the help shows them. Change it before Add.
  T values;

  // Adds the flags of fields that have one and that `select(field, group)` takes.
  template <class Select>
  void Add(const FlagSet& app, Select select) {
    std::string_view group;
    T::VisitFields([&](const Field& field, auto member, auto...) {
      if (!field.group.empty()) group = field.group;
      if constexpr (std::is_constructible_v<FieldValue, decltype(&member(values))>)
        if (!FlagNames(field).empty() && select(field, group))
          added_.push_back({field, AddField(app, field, &member(values))});
    });
  }

  // Sets the fields of `out` that a flag or a variable sets. Errors: of ReadVariable.
  [[nodiscard]] Status Apply(T& out) const {
    Status status;
    T::VisitFields([&](const Field& field, auto member, auto...) {
      if constexpr (std::is_constructible_v<FieldValue, decltype(&member(out))>) {
        const Added* added = Find(field.name);
        if (!status || added == nullptr) return;
        if (added->flag.given()) {
          member(out) = member(values);
        } else {
          status = ReadVariable(field, &member(out));
        }
      }
    });
    return status;
  }

  // Calls f(field, value) for each field that a flag or a variable sets.
  // Errors: of ReadVariable and Validate.
  template <class F>
  [[nodiscard]] Status ForEachSet(const F& f) const {
    T set = values;
    LATTE_RETURN_IF_ERROR(Apply(set));
    LATTE_RETURN_IF_ERROR(Validate(set));
    T::VisitFields([&](const Field& field, auto member, auto...) {
      if constexpr (std::is_constructible_v<FieldValue, decltype(&member(set))>) {
        const Added* added = Find(field.name);
        if (added != nullptr && (added->flag.given() || VariableIsSet(field)))
          f(field, member(set));
      }
    });
    return {};
  }

  // The flags on the command line: "--threads".
  std::vector<std::string> Given() const {
    std::vector<std::string> out;
    for (const Added& added : added_)
      if (added.flag.given()) out.push_back(LongFlag(added.field));
    return out;
  }

  // T::Validate; its errors name flags, or variables where those set the field.
  [[nodiscard]] Status Validate(const T& value) const { return Named(value.Validate()); }

  // An error that begins with a field's name begins with the flag, or the variable that set it.
  [[nodiscard]] Status Named(Status status) const {
    std::vector<Field> fields;
    std::vector<std::string> variables;
    for (const Added& added : added_) {
      fields.push_back(added.field);
      if (!added.flag.given() && VariableIsSet(added.field))
        variables.push_back(Variable(added.field));
    }
    return NameSource(std::move(status), fields, variables);
  }

 private:
  struct Added {
    Field field;
    Flag flag;
  };
  const Added* Find(std::string_view name) const {
    for (const Added& added : added_)
      if (added.field.name == name) return &added;
    return nullptr;
  }

  std::vector<Added> added_;
};

}  // namespace latte
