#include "apps/flags/field_flags.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

namespace latte {
namespace {

// "16G" for 16 << 30, as --cache-bytes reads it.
std::string BytesText(int64_t bytes) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  return bytes > 0 && bytes % kGiB == 0 ? fmt::format("{}G", bytes / kGiB) : fmt::to_string(bytes);
}

// The default that the help shows; empty: none.
struct DefaultText {
  const Field& field;

  std::string operator()(const bool* value) const {
    return field.choices.empty() ? "" : std::string(Choices(field)[*value ? 0 : 1]);
  }
  std::string operator()(const int64_t* value) const {
    return field.bytes ? BytesText(*value) : fmt::to_string(*value);
  }
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const std::vector<std::string>*) const { return ""; }
  std::string operator()(const LogitBias*) const { return ""; }
  template <class Number>
  std::string operator()(const Number* value) const {
    return fmt::to_string(*value);
  }
};

std::string HelpText(const Field& field, const FieldValue& value) {
  const std::string text =
      field.fallback.empty() ? std::visit(DefaultText{field}, value) : std::string(field.fallback);
  return std::string(field.help) + (text.empty() ? "" : fmt::format(" (default: {})", text));
}

// "bf16|f16|f32", or the field's own word; empty: as the type says.
std::string FieldValueWord(const Field& field) {
  std::string out(field.value);
  for (const std::string_view choice : Choices(field))
    out += fmt::format("{}{}", out.empty() ? "" : "|", choice);
  return out;
}

// Adds a flag of the kind that its value needs.
struct FieldAdder {
  FlagSet app;
  const Field& field;
  std::string help;

  Flag operator()(bool* value) const {
    const std::string names = FlagNames(field);
    if (!field.choices.empty()) return AddChoice(value);
    if (LongFlag(field).starts_with("--no-"))
      return app.AddSwitch(
          names, [value] { *value = false; }, help);
    return app.AddSwitch(names, *value, help);
  }
  Flag operator()(std::vector<std::string>* value) const {
    return WithWord(app.Add(FlagNames(field), *value, help));
  }
  Flag operator()(LogitBias* value) const {
    const auto parse = [value](const std::string& text) -> Status {
      LATTE_ASSIGN_OR_RETURN(*value, ParseLogitBias(text));
      return {};
    };
    return AddParsed(parse);
  }
  template <class T>
  Flag operator()(T* value) const {
    Flag flag = app.Add(FlagNames(field), *value, help);
    return WithWord(field.bytes ? flag.Bytes() : flag);
  }

 private:
  Flag WithWord(Flag flag) const {
    const std::string word = FieldValueWord(field);
    return word.empty() ? flag : flag.Value(word);
  }
  Flag AddChoice(bool* value) const {
    const auto parse = [value, field = field](const std::string& text) -> Status {
      const std::optional<bool> parsed = ParseChoice(field, text);
      if (!parsed)
        return InvalidArgument(fmt::format("expected {}, found '{}'", field.choices, text));
      *value = *parsed;
      return {};
    };
    return AddParsed(parse);
  }
  // The error of `parse` begins with the flag.
  template <class Parse>
  Flag AddParsed(Parse parse) const {
    const std::string flag = LongFlag(field);
    const auto named = [parse, flag](const std::string& text) -> Status {
      const Status status = parse(text);
      return status ? status : Fail(status.error().code, flag + ": " + status.error().message);
    };
    return WithWord(app.AddParsed(FlagNames(field), named, help));
  }
};

std::string VariableText(const Field& field) {
  const std::string name = Variable(field);
  const char* text = name.empty() ? nullptr : std::getenv(name.c_str());
  return text == nullptr ? "" : text;
}

}  // namespace

Flag AddField(const FlagSet& app, const Field& field, FieldValue value) {
  const FlagSet own = field.expert          ? app.Group("Expert")
                      : field.group.empty() ? app
                                            : app.Group(std::string(field.group));
  return std::visit(FieldAdder{own, field, HelpText(field, value)}, value);
}

bool VariableIsSet(const Field& field) { return !VariableText(field).empty(); }

Status ReadVariable(const Field& field, FieldValue value) {
  const std::string text = VariableText(field);
  if (text.empty() || ReadFieldText(field, text, value)) return {};
  return InvalidArgument(
      fmt::format("{}: expected {}, found '{}'", Variable(field), KindText(field, value), text));
}

Status NameSource(Status status, const std::vector<FieldSource>& sources) {
  if (status) return status;
  const std::string& message = status.error().message;
  const std::string named = message.substr(0, message.find_first_of(": "));
  for (const auto& [field, name] : sources)
    if (named == NameInMessages(field, '_') || named == NameInMessages(field, '-') ||
        "--" + named == LongFlag(field))
      return Fail(status.error().code, name + message.substr(named.size()));
  return status;
}

}  // namespace latte
