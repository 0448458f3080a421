// Python's str() and repr(), which a template uses when it prints or joins a value.
#include <algorithm>

#include <fmt/format.h>

#include "src/jinja/value.h"
#include "src/text/unicode/unicode.h"

namespace latte::jinja {
namespace {

// str.isprintable for assigned characters, apart from oddities of the private planes. Controls,
// formats, separators other than the space, and private-use characters are escaped.
bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  if (c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || IsWhiteSpace(c)) return false;
  constexpr std::pair<char32_t, char32_t> kHidden[] = {
      {0x600, 0x605},   {0x61C, 0x61C},   {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x180E, 0x180E},
      {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},   {0xE000, 0xF8FF},   {0xFEFF, 0xFEFF},
      {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE00FF}, {0xF0000, 0x10FFFF}};
  return std::none_of(std::begin(kHidden), std::end(kHidden),
                      [c](auto range) { return c >= range.first && c <= range.second; });
}

void AppendEscape(uint32_t c, std::string* out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  *out += c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
  for (int shift = c < 0x100 ? 4 : c < 0x10000 ? 12 : 28; shift >= 0; shift -= 4)
    *out += kDigits[(c >> shift) & 0xF];
}

Status AppendRepr(std::string_view text, Budget* budget, std::string* out) {
  const bool single = text.find('\'') == std::string_view::npos;
  const char quote = single || text.find('"') != std::string_view::npos ? '\'' : '"';
  *out += quote;
  size_t paid = 0;
  for (size_t i = 0; i < text.size();) {
    if (i >= paid) {
      paid = PartEnd(text, i);
      LATTE_RETURN_IF_ERROR(budget->CheckString(out->size()));
      LATTE_RETURN_IF_ERROR(budget->Spend(static_cast<int64_t>(paid - i) / 16));
    }
    const Utf8Step step = DecodeUtf8(text.substr(i));
    const auto c = static_cast<uint32_t>(step.code_point);
    if (c == '\\' || c == static_cast<uint32_t>(quote))
      (*out += '\\') += static_cast<char>(c);
    else if (c == '\n' || c == '\r' || c == '\t')
      *out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else if (IsPrintable(c))
      out->append(text.substr(i, static_cast<size_t>(step.bytes)));
    else
      AppendEscape(c, out);
    i += static_cast<size_t>(step.bytes);
  }
  *out += quote;
  return {};
}

// The depth of values bounds the recursion. A value may contain the same part many times, so each
// occurrence counts against the budget.
Status Repr(const Value& value, Budget* budget, std::string* out) {
  LATTE_RETURN_IF_ERROR(budget->Spend(1));
  const size_t before = out->size();
  switch (value.kind()) {
    case Kind::kUndefined:
      *out += "Undefined";
      break;
    case Kind::kNone:
      *out += "None";
      break;
    case Kind::kBool:
      *out += value.boolean() ? "True" : "False";
      break;
    case Kind::kInt:
      *out += std::to_string(value.integer());
      break;
    case Kind::kFloat:
      *out += FloatRepr(value.number());
      break;
    case Kind::kString:
      LATTE_RETURN_IF_ERROR(AppendRepr(value.bytes(), budget, out));
      break;
    case Kind::kList: {
      const List& list = value.list();
      *out += list.tuple ? '(' : '[';
      for (size_t i = 0; i < list.items.size(); ++i) {
        if (i > 0) *out += ", ";
        LATTE_RETURN_IF_ERROR(Repr(list.items[i], budget, out));
      }
      *out += !list.tuple ? "]" : list.items.size() == 1 ? ",)" : ")";
      return budget->CheckString(out->size());
    }
    case Kind::kDict: {
      *out += '{';
      for (size_t i = 0; i < value.dict().entries.size(); ++i) {
        if (i > 0) *out += ", ";
        LATTE_RETURN_IF_ERROR(Repr(value.dict().entries[i].key, budget, out));
        *out += ": ";
        LATTE_RETURN_IF_ERROR(Repr(value.dict().entries[i].value, budget, out));
      }
      *out += '}';
      return budget->CheckString(out->size());
    }
    case Kind::kNamespace:
    case Kind::kCallable:
      return Unsupported(fmt::format("a '{}' cannot be printed", TypeName(value)));
  }
  return budget->SpendAppended(before, out->size());
}

}  // namespace

Result<Text> Str(const Value& value, Budget* budget) {
  if (value.Is(Kind::kString)) return value.text();
  if (value.Is(Kind::kUndefined)) return Text();
  return ReprText(value, budget);
}

Result<Text> ReprText(const Value& value, Budget* budget) {
  std::string out;
  LATTE_RETURN_IF_ERROR(Repr(value, budget, &out));
  // The template could have written the text of a number or a constant itself.
  const bool holds_text = value.Is(Kind::kString) || value.Is(Kind::kList) || value.Is(Kind::kDict);
  return Text(std::move(out), !holds_text);
}

}  // namespace latte::jinja
