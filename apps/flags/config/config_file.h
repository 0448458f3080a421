// A file of options (--config). It overrides only the defaults. Keys are names of fields,
// or of their flags, with '_' or '-', at the top of the file or in the table of their struct.
// docs/options.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/fields.h"
#include "latte/status.h"

#include "apps/flags/config/toml_text.h"
#include "apps/flags/values/field_value.h"

namespace latte {

// The key that files of options are written with: the flag's name, "context" for max_tokens.
std::string ConfigKey(const Field& field);

// A table that a file may have, with its keys.
struct ConfigTable {
  std::string_view name;
  std::vector<Field> fields;
};

template <class T>
ConfigTable ConfigTableOf(std::string_view name) {
  ConfigTable out{name, {}};
  T::VisitFields([&](const Field& field, auto...) { out.fields.push_back(field); });
  return out;
}

class ConfigFile {
 public:
  ConfigFile() = default;  // has nothing

  // Errors: of ReadFile and ParseToml; kInvalidArgument naming file, line and key for a table or
  // key that is not in `tables`, or one that is there twice.
  [[nodiscard]] static Result<ConfigFile> Load(const std::string& path,
                                               const std::vector<ConfigTable>& tables);
  [[nodiscard]] static Result<ConfigFile> Parse(std::string_view text, const std::string& path,
                                                const std::vector<ConfigTable>& tables);

  bool Has(const Field& field) const { return Find(field) != nullptr; }

  // Sets `value` to what the file says, if it has the field.
  // Errors: kInvalidArgument naming file, line, key, what is expected and what was found.
  [[nodiscard]] Status Read(const Field& field, FieldValue value) const;

  // "latte.toml:3: max_tokens". Requires: Has(field).
  std::string Place(const Field& field) const;

 private:
  const TomlEntry* Find(const Field& field) const;
  Status Check(const std::vector<ConfigTable>& tables) const;

  std::string path_;
  std::vector<TomlEntry> entries_;  // keys with '_'
};

// Reads every field of T that the file has. Errors: of ConfigFile::Read.
template <class T>
[[nodiscard]] Status ReadConfig(const ConfigFile& file, T& out) {
  Status status;
  T::VisitFields([&](const Field& field, auto member, auto...) {
    if (status) status = file.Read(field, &member(out));
  });
  return status;
}

}  // namespace latte
