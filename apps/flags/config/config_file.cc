#include "apps/flags/config/config_file.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "src/base/fields/fields.h"
#include "src/base/fields/suggest.h"
#include "src/base/file.h"

namespace latte {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

std::string Underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool IsKeyOf(const std::string& key, const Field& field) {
  return key == field.name || key == ConfigKey(field);
}

// A field that a file may set.
struct Setting {
  std::string_view table;
  const Field* field = nullptr;
};

Setting FindSetting(const std::vector<ConfigTable>& tables, const std::string& key) {
  for (const ConfigTable& table : tables)
    for (const Field& field : table.fields)
      if (IsKeyOf(key, field)) return {table.name, &field};
  return {};
}

std::vector<std::string> KeysOf(const std::vector<ConfigTable>& tables) {
  std::vector<std::string> out;
  for (const ConfigTable& table : tables)
    for (const Field& field : table.fields) out.push_back(ConfigKey(field));
  return out;
}

std::string TablesText(const std::vector<ConfigTable>& tables) {
  std::string out;
  for (const ConfigTable& table : tables)
    out += fmt::format("{}[{}]", out.empty() ? "" : " or ", table.name);
  return out;
}

// Sets a field to a value of the file. False: wrong type.
struct TomlReader {
  const Field& field;
  const TomlValue& from;

  bool operator()(bool* out) const {
    const auto* text = std::get_if<std::string>(&from);
    if (text != nullptr && !field.choices.empty()) return ReadFieldText(field, *text, out);
    return Take(out);
  }
  bool operator()(double* out) const {
    if (const auto* whole = std::get_if<int64_t>(&from)) {
      *out = static_cast<double>(*whole);
      return true;
    }
    return Take(out);
  }
  bool operator()(int* out) const {
    const auto* whole = std::get_if<int64_t>(&from);
    if (whole == nullptr || *whole < std::numeric_limits<int>::min() ||
        *whole > std::numeric_limits<int>::max())
      return false;
    *out = static_cast<int>(*whole);
    return true;
  }
  bool operator()(int64_t* out) const {
    const auto* text = std::get_if<std::string>(&from);
    if (text != nullptr && field.bytes) return ReadFieldText(field, *text, out);
    return Take(out);
  }
  bool operator()(uint64_t* out) const {
    const auto* whole = std::get_if<int64_t>(&from);
    if (whole == nullptr || *whole < 0) return false;
    *out = static_cast<uint64_t>(*whole);
    return true;
  }
  bool operator()(std::string* out) const { return Take(out); }
  bool operator()(std::vector<std::string>* out) const {
    if (const auto* text = std::get_if<std::string>(&from)) {
      *out = {*text};
      return true;
    }
    return Take(out);
  }
  bool operator()(LogitBias*) const { return false; }

 private:
  template <class T>
  bool Take(T* out) const {
    const T* value = std::get_if<T>(&from);
    if (value != nullptr) *out = *value;
    return value != nullptr;
  }
};

// The types that a field takes, in words.
struct TomlKind {
  const Field& field;

  std::string operator()(const bool*) const {
    return field.choices.empty() ? "true or false" : std::string(field.choices);
  }
  std::string operator()(const int64_t*) const {
    return field.bytes ? "bytes, such as 1073741824 or \"1G\"" : "a whole number";
  }
  std::string operator()(const double*) const { return "a number"; }
  std::string operator()(const std::string*) const { return "a text in quotes"; }
  std::string operator()(const std::vector<std::string>*) const { return "a list of texts"; }
  std::string operator()(const LogitBias*) const { return "nothing"; }
  template <class Integer>
  std::string operator()(const Integer*) const {
    return "a whole number";
  }
};

}  // namespace

std::string ConfigKey(const Field& field) {
  std::string flag = LongFlag(field);
  if (flag.empty()) return std::string(field.name);
  return Underscored(flag.substr(flag.starts_with("--no-") ? 5 : 2));
}

Result<ConfigFile> ConfigFile::Load(const std::string& path,
                                    const std::vector<ConfigTable>& tables) {
  const Result<std::string> text = ReadFile(path, kMostBytes);
  if (!text) return Fail(text.error().code, "--config: " + text.error().message);
  return Parse(*text, path, tables);
}

Result<ConfigFile> ConfigFile::Parse(std::string_view text, const std::string& path,
                                     const std::vector<ConfigTable>& tables) {
  ConfigFile out;
  out.path_ = path;
  LATTE_ASSIGN_OR_RETURN(out.entries_, ParseToml(text, path));
  for (TomlEntry& entry : out.entries_) entry.key = Underscored(std::move(entry.key));
  LATTE_RETURN_IF_ERROR(out.Check(tables));
  return out;
}

Status ConfigFile::Check(const std::vector<ConfigTable>& tables) const {
  const auto error = [&](const TomlEntry& entry, const std::string& what) {
    return InvalidArgument(fmt::format("{}:{}: {}", path_, entry.line, what));
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    const TomlEntry& entry = entries_[i];
    const bool known = entry.table.empty() ||
                       std::any_of(tables.begin(), tables.end(),
                                   [&](const ConfigTable& t) { return t.name == entry.table; });
    if (!known)
      return error(entry, fmt::format("[{}]: expected the table {}, found an unknown one",
                                      entry.table, TablesText(tables)));
    const Setting setting = FindSetting(tables, entry.key);
    if (setting.field == nullptr)
      return error(entry, fmt::format("{}: expected the name of an option (docs/options.md), found "
                                      "an unknown one{}",
                                      entry.key, DidYouMean(entry.key, KeysOf(tables))));
    if (!entry.table.empty() && entry.table != setting.table)
      return error(entry, fmt::format("{}: expected in the table [{}], found in [{}]", entry.key,
                                      setting.table, entry.table));
    for (size_t j = 0; j < i; ++j)
      if (IsKeyOf(entries_[j].key, *setting.field))
        return error(entry, fmt::format("{}: expected once, found in line {} too", entry.key,
                                        entries_[j].line));
  }
  return {};
}

const TomlEntry* ConfigFile::Find(const Field& field) const {
  for (const TomlEntry& entry : entries_)
    if (IsKeyOf(entry.key, field)) return &entry;
  return nullptr;
}

std::string ConfigFile::Place(const Field& field) const {
  return fmt::format("{}:{}: {}", path_, Find(field)->line, Find(field)->key);
}

Status ConfigFile::Read(const Field& field, FieldValue value) const {
  const TomlEntry* entry = Find(field);
  if (entry == nullptr || std::visit(TomlReader{field, entry->value}, value)) return {};
  return InvalidArgument(fmt::format("{}: expected {}, found {}", Place(field),
                                     std::visit(TomlKind{field}, value),
                                     TomlValueText(entry->value)));
}

}  // namespace latte
