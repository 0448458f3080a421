// Flags from a list of fields (latte/fields.h), and their other sources. The order of precedence
// is: flag, environment variable, file of options, default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "latte/fields.h"
#include "latte/status.h"

#include "apps/flags/config/config_file.h"
#include "apps/flags/flag_set.h"
#include "apps/flags/values/field_value.h"
#include "src/base/fields/fields.h"

namespace latte {

// Adds the flag of `field` to its group, or to that of `app` if it names none; it sets `value`,
// whose present value the help shows as the default.
Flag AddField(const FlagSet& app, const Field& field, FieldValue value);

// Whether the field has a variable that is set. An empty one counts as unset.
bool VariableIsSet(const Field& field);

// Sets `value` to the text of the field's variable, if that is set.
// Errors: kInvalidArgument naming the variable.
[[nodiscard]] Status ReadVariable(const Field& field, FieldValue value);

// Where a field has its value from: "--top-p", "LATTE_TOP_P", "latte.toml:3: top_p".
struct FieldSource {
  Field field;
  std::string name;
};

// The error of a check that begins with a field's name ("top_p: …") begins with its source instead.
// Other errors stay.
[[nodiscard]] Status NameSource(Status status, const std::vector<FieldSource>& sources);

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
          added_.push_back({field, AddField(group.empty() ? app : app.Group(std::string(group)),
                                            field, &member(values))});
    });
  }

  // Sets the fields of `out` that a flag, a variable or the file sets.
  // Errors: of ReadVariable and ConfigFile::Read.
  [[nodiscard]] Status Apply(T& out, const ConfigFile& file = {}) const {
    Status status;
    T::VisitFields([&](const Field& field, auto member, auto...) {
      if constexpr (std::is_constructible_v<FieldValue, decltype(&member(out))>) {
        const Added* added = Find(field.name);
        if (!status || added == nullptr) return;
        if (added->flag.given()) {
          member(out) = member(values);
        } else if (VariableIsSet(field)) {
          status = ReadVariable(field, &member(out));
        } else {
          status = file.Read(field, &member(out));
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

  // T::Validate; its errors name the source of the field, or its flag.
  [[nodiscard]] Status Validate(const T& value, const ConfigFile& file = {}) const {
    return Named(value.Validate(), file);
  }

  // An error that begins with a field's name begins with its source, or its flag.
  [[nodiscard]] Status Named(Status status, const ConfigFile& file = {}) const {
    std::vector<FieldSource> sources;
    for (const Added& added : added_) {
      const std::string source = SourceOf(added.field, file);
      sources.push_back({added.field, source.empty() ? LongFlag(added.field) : source});
    }
    return NameSource(std::move(status), sources);
  }

  // "--top-p", "LATTE_TOP_P", "latte.toml:3: top_p"; empty: the default, or no flag was added.
  std::string SourceOf(const Field& field, const ConfigFile& file) const {
    const Added* added = Find(field.name);
    if (added == nullptr) return "";
    if (added->flag.given()) return LongFlag(field);
    if (VariableIsSet(field)) return Variable(field);
    return file.Has(field) ? file.Place(field) : "";
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
