// MODEL and --config of commands that take a file of options, and the output of options as such a
// file.
#pragma once

#include <string>
#include <string_view>

#include "latte/options.h"
#include "latte/status.h"

#include "apps/flags/config/config_file.h"
#include "apps/flags/field_flags.h"
#include "apps/flags/flag_set.h"

namespace latte {

class ConfigFlags {
 public:
  void Add(const FlagSet& app);

  // The file of --config, checked; without one a file that has nothing. `serve` and `batch` may
  // share a file. Errors: of ConfigFile.
  [[nodiscard]] Result<ConfigFile> Load() const;

  // MODEL, else the file's model, else tiny. Errors: of ConfigFile::Read.
  [[nodiscard]] Result<std::string> Model(const ConfigFile& file) const;
  // "MODEL", "latte.toml:1: model"; empty: the default.
  std::string ModelSource(const ConfigFile& file) const;

 private:
  std::string path_;
  std::string model_ = EngineOptions().model;
  std::vector<Flag> model_flag_;  // one, once added
};

// "key = value  # source", a line of a file of options. Keys are not printed.
std::string ConfigLine(const Field& field, FieldValue value, const std::string& source);

// The fields of T under the heading `table`, as --config reads them, with the source of each value.
template <class T>
std::string ConfigText(std::string_view table, T values, const StructFlags<T>& flags,
                       const ConfigFile& file) {
  std::string out(table);
  T::VisitFields([&](const Field& field, auto member, auto...) {
    if (field.flag != "MODEL")
      out += ConfigLine(field, &member(values), flags.SourceOf(field, file));
  });
  return out;
}

}  // namespace latte
