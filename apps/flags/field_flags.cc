#include "apps/flags/field_flags.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

namespace latte {
namespace {

std::optional<bool> ParseSwitch(std::string_view text) {
  for (const std::string_view yes : {"1", "true", "on", "yes"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "false", "off", "no"})
    if (text == no) return false;
  return std::nullopt;
}

// "int8 or bf16": the first means true.
std::optional<bool> ParseChoice(const Field& field, std::string_view text) {
  const std::vector<std::string_view> choices = Choices(field);
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) return std::nullopt;
  return found == choices.begin();
}

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

// Adds a flag of the kind that its value needs.
struct FieldAdder {
  const FlagSet& app;
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
    return app.Add(FlagNames(field), *value, help).OneValueEach();
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
    return field.bytes ? flag.Bytes() : flag;
  }

 private:
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
    return app.AddParsed(FlagNames(field), named, help);
  }
};

// The value of a variable of this type, in words.
struct KindText {
  const Field& field;

  std::string operator()(const bool*) const {
    return field.choices.empty() ? "0 or 1" : std::string(field.choices);
  }
  std::string operator()(const double*) const { return "a number"; }
  std::string operator()(const LogitBias*) const { return "ID:VALUE pairs separated by commas"; }
  std::string operator()(const std::string*) const { return "a text"; }
  std::string operator()(const std::vector<std::string>*) const { return "a text"; }
  template <class Integer>
  std::string operator()(const Integer*) const {
    return field.bytes ? "bytes, such as 512M or 16G" : "a whole number";
  }
};

// Sets a value to a variable's text. False: it is none of this type.
struct TextReader {
  const Field& field;
  const std::string& text;

  bool operator()(bool* value) const {
    const std::optional<bool> parsed =
        field.choices.empty() ? ParseSwitch(text) : ParseChoice(field, text);
    if (parsed) *value = *parsed;
    return parsed.has_value();
  }
  bool operator()(std::string* value) const {
    *value = text;
    return true;
  }
  bool operator()(std::vector<std::string>* value) const {
    *value = {text};
    return true;
  }
  bool operator()(LogitBias* value) const {
    Result<LogitBias> parsed = ParseLogitBias(text);
    if (parsed) *value = *std::move(parsed);
    return parsed.has_value();
  }
  template <class Number>
  bool operator()(Number* value) const {
    return ReadAsFlag(text, field.bytes, *value);
  }
};

std::string VariableText(const Field& field) {
  const std::string name = Variable(field);
  const char* text = name.empty() ? nullptr : std::getenv(name.c_str());
  return text == nullptr ? "" : text;
}

}  // namespace

Result<LogitBias> ParseLogitBias(std::string_view text) {
  LogitBias out;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    const size_t colon = std::min(piece.find(':'), piece.size());
    const char* const end = piece.data() + piece.size();
    std::pair<int32_t, float> bias;
    const auto id = std::from_chars(piece.data(), piece.data() + colon, bias.first);
    const bool named = id.ec == std::errc() && id.ptr == piece.data() + colon && id.ptr != end;
    const auto value = named ? std::from_chars(id.ptr + 1, end, bias.second)
                             : std::from_chars_result{nullptr, std::errc::invalid_argument};
    if (value.ec != std::errc() || value.ptr != end)
      return InvalidArgument(
          fmt::format("expected ID:VALUE pairs separated by commas, found '{}'", piece));
    out.push_back(bias);
  }
  return out;
}

Flag AddField(const FlagSet& app, const Field& field, FieldValue value) {
  return std::visit(FieldAdder{app, field, HelpText(field, value)}, value);
}

bool VariableIsSet(const Field& field) { return !VariableText(field).empty(); }

Status ReadVariable(const Field& field, FieldValue value) {
  const std::string text = VariableText(field);
  if (text.empty() || std::visit(TextReader{field, text}, value)) return {};
  return InvalidArgument(fmt::format("{}: expected {}, found '{}'", Variable(field),
                                     std::visit(KindText{field}, value), text));
}

Status NameSource(Status status, const std::vector<Field>& fields,
                  const std::vector<std::string>& from_variables) {
  if (status) return status;
  const std::string& message = status.error().message;
  const std::string named = message.substr(0, message.find_first_of(": "));
  for (const Field& field : fields) {
    const std::string flag = LongFlag(field);
    if (named != NameInMessages(field, '_') && named != NameInMessages(field, '-') &&
        "--" + named != flag)
      continue;
    const std::string variable = Variable(field);
    const bool from_variable =
        std::find(from_variables.begin(), from_variables.end(), variable) != from_variables.end();
    return Fail(status.error().code,
                (from_variable ? variable : flag) + message.substr(named.size()));
  }
  return status;
}

}  // namespace latte
