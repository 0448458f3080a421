#include "apps/flags/values/field_value.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "apps/flags/seed.h"
#include "apps/flags/values/value_text.h"
#include "src/base/fields/fields.h"
#include "src/base/strings.h"

namespace latte {
namespace {

std::optional<bool> ParseSwitch(std::string_view text) {
  for (const std::string_view yes : {"1", "true", "on", "yes"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "false", "off", "no"})
    if (text == no) return false;
  return std::nullopt;
}

// The value of a variable of this type, in words.
struct KindWords {
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
  // A seed, the only number without a sign. As for the flag, -1 draws one.
  bool operator()(uint64_t* value) const {
    if (text != "-1") return ReadAsFlag(text, field.bytes, *value);
    *value = DrawSeed();
    return true;
  }
  template <class Number>
  bool operator()(Number* value) const {
    return ReadAsFlag(text, field.bytes, *value);
  }
};

}  // namespace

std::optional<bool> ParseChoice(const Field& field, std::string_view text) {
  const std::vector<std::string_view> choices = Choices(field);
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) return std::nullopt;
  return found == choices.begin();
}

Result<LogitBias> ParseLogitBias(std::string_view text) {
  LogitBias out;
  while (!text.empty()) {
    const std::string_view piece = TakePiece(&text, ',');
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

bool ReadFieldText(const Field& field, const std::string& text, FieldValue value) {
  return std::visit(TextReader{field, text}, value);
}

std::string KindText(const Field& field, FieldValue value) {
  return std::visit(KindWords{field}, value);
}

}  // namespace latte
