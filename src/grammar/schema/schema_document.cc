#include "src/grammar/schema/schema_document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/grammar/schema/plain_schema.h"

namespace latte {
namespace {

// Members that hold values, not schemas.
constexpr std::array<std::string_view, 5> kValueKeywords = {"enum", "const", "default", "example",
                                                            "examples"};
// Members that hold schemas by name.
constexpr std::array<std::string_view, 6> kNamedSchemas = {
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"};

bool IsOneOf(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

std::string Percent(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const hex = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(hex, hex + 2, byte, 16).ptr == hex + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string Unescaped(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    if (escape && (token[i + 1] == '0' || token[i + 1] == '1'))
      out += token[++i] == '0' ? '~' : '/';
    else
      out += token[i];
  }
  return out;
}

const JsonOut* Step(const JsonOut& value, const std::string& token) {
  if (value.is_object()) {
    const auto at = value.find(token);
    return at == value.end() ? nullptr : &*at;
  }
  size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto [ptr, error] = std::from_chars(token.data(), end, index);
  const bool is_index = !token.empty() && ptr == end && error == std::errc() &&
                        (token.size() == 1 || token.front() != '0');
  return value.is_array() && is_index && index < value.size() ? &value[index] : nullptr;
}

}  // namespace

Result<SchemaDocument> SchemaDocument::Read(const std::string& text) {
  Result<JsonOut> root = ParseToEdit(text, "grammar");
  if (!root) return InvalidArgument(root.error().message);
  if (!root->is_object() && !root->is_boolean())
    return InvalidArgument("grammar: expected a JSON schema, which is an object");
  SchemaDocument out;
  out.root_ = std::make_shared<const JsonOut>(*std::move(root));
  LATTE_RETURN_IF_ERROR(out.Index(*out.root_, false));
  return out;
}

// Notes the names of one schema.
Status SchemaDocument::IndexSchema(const JsonOut& schema, bool* below_id) {
  const auto text_of = [&](const char* key) {
    const auto at = schema.find(key);
    return at != schema.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const auto note = [&](std::map<std::string, const JsonOut*, std::less<>>* names,
                        const std::string& name) {
    const auto [at, is_new] = names->emplace(name, &schema);
    if (!is_new) at->second = nullptr;
  };
  for (const char* key : {"$anchor", "$dynamicAnchor"})
    if (const std::string anchor = text_of(key); !anchor.empty()) note(&anchors_, anchor);
  std::string id = text_of("$id");
  if (id.starts_with('#')) {  // before 2019-09, an anchor
    note(&anchors_, id.substr(1));
  } else if (!id.empty()) {
    if (id.ends_with('#')) id.pop_back();
    note(&ids_, id);
    *below_id |= &schema != root_.get();
  }
  if (*below_id && text_of("$ref").starts_with('#'))
    return Unsupported(
        fmt::format("grammar: '$ref': '{}' below a schema with its own '$id' cannot be enforced; "
                    "leave '$id' out",
                    text_of("$ref")));
  return {};
}

Status SchemaDocument::Index(const JsonOut& schema, bool below_id) {
  if (schema.is_array()) {
    for (const JsonOut& item : schema) LATTE_RETURN_IF_ERROR(Index(item, below_id));
    return {};
  }
  if (!schema.is_object()) return {};
  LATTE_RETURN_IF_ERROR(IndexSchema(schema, &below_id));
  for (const auto& [key, value] : schema.items()) {
    if (IsOneOf(kValueKeywords, key)) continue;
    if (!IsOneOf(kNamedSchemas, key)) {
      LATTE_RETURN_IF_ERROR(Index(value, below_id));
    } else if (value.is_object()) {
      for (const JsonOut& named : value) LATTE_RETURN_IF_ERROR(Index(named, below_id));
    }
  }
  return {};
}

Result<const JsonOut*> SchemaDocument::Resolve(const std::string& reference,
                                               const std::string& path) const {
  const size_t hash = std::min(reference.find('#'), reference.size());
  const std::string document = reference.substr(0, hash);
  const std::string fragment =
      Percent(std::string_view(reference).substr(std::min(hash + 1, reference.size())));
  const JsonOut* out = root_.get();
  if (!document.empty()) {
    const auto known = ids_.find(document);
    if (known == ids_.end() || known->second == nullptr)
      return Unsupported(fmt::format(
          "{}'$ref': expected a place inside of the schema, found '{}'; references to other "
          "documents cannot be enforced",
          SchemaPlace(path), reference));
    out = known->second;
  }
  if (fragment.starts_with('/')) {
    out = At(*out, fragment);
  } else if (!fragment.empty()) {
    const auto known = anchors_.find(fragment);
    out = known == anchors_.end() ? nullptr : known->second;
  }
  if (out == nullptr || (!out->is_object() && !out->is_boolean()))
    return InvalidArgument(
        fmt::format("{}'$ref': '{}' leads to no schema", SchemaPlace(path), reference));
  return out;
}

const JsonOut* SchemaDocument::At(const JsonOut& root, std::string_view pointer) {
  const JsonOut* out = &root;
  while (out != nullptr && !pointer.empty()) {
    if (pointer.front() != '/') return nullptr;
    const size_t end = std::min(pointer.find('/', 1), pointer.size());
    out = Step(*out, Unescaped(pointer.substr(1, end - 1)));
    pointer.remove_prefix(end);
  }
  return out;
}

}  // namespace latte
