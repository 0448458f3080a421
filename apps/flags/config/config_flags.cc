#include "apps/flags/config/config_flags.h"

#include <fmt/format.h>

#include "src/base/fields/fields.h"
#include "src/serve/options.h"

namespace latte {
namespace {

Field ModelField() { return FieldOf<EngineOptions>("model"); }

// A value as TOML writes it.
struct TomlText {
  const Field& field;

  std::string operator()(const bool* value) const {
    if (!field.choices.empty()) return TomlQuoted(Choices(field)[*value ? 0 : 1]);
    return *value ? "true" : "false";
  }
  std::string operator()(const std::string* value) const { return TomlQuoted(*value); }
  std::string operator()(const std::vector<std::string>* values) const {
    std::string out;
    for (const std::string& value : *values)
      out += fmt::format("{}{}", out.empty() ? "" : ", ", TomlQuoted(value));
    return fmt::format("[{}]", out);
  }
  std::string operator()(const LogitBias*) const { return "\"\""; }
  template <class Number>
  std::string operator()(const Number* value) const {
    return fmt::to_string(*value);
  }
};

}  // namespace

void ConfigFlags::Add(const FlagSet& app) {
  model_flag_ = {app.Add("MODEL", model_, "model, also as -m MODEL (default: tiny)")};
  app.Group("Model")
      .Add("--config", path_, "a TOML file of options; flags and LATTE_ variables go first")
      .Value("FILE");
}

Result<ConfigFile> ConfigFlags::Load() const {
  if (path_.empty()) return ConfigFile();
  LATTE_ASSIGN_OR_RETURN(ConfigFile file,
                         ConfigFile::Load(path_, {ConfigTableOf<EngineOptions>("engine"),
                                                  ConfigTableOf<ServeOptions>("serve")}));
  // Types of all values, also of those that a flag or a variable goes before.
  EngineOptions engine;
  ServeOptions serve;
  LATTE_RETURN_IF_ERROR(ReadConfig(file, engine));
  LATTE_RETURN_IF_ERROR(ReadConfig(file, serve));
  return file;
}

Result<std::string> ConfigFlags::Model(const ConfigFile& file) const {
  std::string out = model_;
  if (!model_flag_.front().given()) LATTE_RETURN_IF_ERROR(file.Read(ModelField(), &out));
  return out;
}

std::string ConfigFlags::ModelSource(const ConfigFile& file) const {
  if (model_flag_.front().given()) return "MODEL";
  return file.Has(ModelField()) ? file.Place(ModelField()) : "";
}

std::string ConfigLine(const Field& field, FieldValue value, const std::string& source) {
  const std::string from = source.empty() ? "default" : source;
  if (field.name == "api_key")
    return fmt::format("# {}: {} ({}), not shown\n", field.name,
                       std::get<std::vector<std::string>*>(value)->size(), from);
  const std::string pair =
      fmt::format("{} = {}", ConfigKey(field), std::visit(TomlText{field}, value));
  return fmt::format("{:<40} # {}\n", pair, from);
}

}  // namespace latte
