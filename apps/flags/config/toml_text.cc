#include "apps/flags/config/toml_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <toml++/toml.h>

namespace latte {
namespace {

std::string KindText(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date";
    default:
      return "a value of another type";
  }
}

TomlValue ValueOf(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const toml::array* list = node.as_array()) {
    std::vector<std::string> texts;
    for (const toml::node& item : *list) {
      const auto* text = item.as_string();
      if (text == nullptr) return TomlOther{"a list with " + TomlValueText(ValueOf(item))};
      texts.push_back(text->get());
    }
    return texts;
  }
  return TomlOther{KindText(node.type())};
}

void Append(const std::string& table, const toml::table& from, std::vector<TomlEntry>& out) {
  for (const auto& [key, node] : from) {
    const toml::table* inner = node.as_table();
    if (inner != nullptr && table.empty() && !inner->is_inline()) {
      Append(std::string(key.str()), *inner, out);
      continue;
    }
    out.push_back({table, std::string(key.str()), ValueOf(node),
                   static_cast<int64_t>(key.source().begin.line)});
  }
}

}  // namespace

Result<std::vector<TomlEntry>> ParseToml(std::string_view text, const std::string& where) {
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return InvalidArgument(fmt::format("{}:{}: expected TOML: {}", where, error.source().begin.line,
                                       error.description()));
  }
  std::vector<TomlEntry> out;
  Append("", parsed.table(), out);
  std::stable_sort(out.begin(), out.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return out;
}

namespace {

struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return fmt::format("'{}'", value); }
  std::string operator()(const std::vector<std::string>&) const { return "a list"; }
  std::string operator()(const TomlOther& value) const { return value.kind; }
  template <class Number>
  std::string operator()(Number value) const {
    return fmt::to_string(value);
  }
};

}  // namespace

std::string TomlValueText(const TomlValue& value) { return std::visit(ValueText{}, value); }

std::string TomlQuoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace latte
