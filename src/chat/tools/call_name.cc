#include "src/chat/tools/call_name.h"

#include <algorithm>

#include "src/base/strings.h"

namespace latte {
namespace {

// Names of functions are letters, digits and a few signs; other models' names are not known.
bool IsName(std::string_view name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7f ||
           std::string_view("<>{}\"`").find(c) != std::string_view::npos;
  });
}

// A client may have replaced the signs of earlier ids, and the model repeats them so:
// functions_NAME_0. Empty: the text is no such id of a known function.
std::string_view KnownNameIn(std::string_view id, const KnownFunctions& known) {
  constexpr std::string_view kPrefix = "functions";
  constexpr std::string_view kSigns = ".:_-";
  if (!id.starts_with(kPrefix)) return {};
  id.remove_prefix(kPrefix.size());
  const std::string_view whole = id;
  const std::string_view named = id.substr(0, id.find_last_not_of(kDigits) + 1);
  for (std::string_view name : {whole, named}) {
    // A sign may belong to the name.
    for (const bool without_end : {false, true})
      for (const bool without_begin : {false, true}) {
        std::string_view inner = name;
        if (without_end && !inner.empty() && kSigns.find(inner.back()) != kSigns.npos)
          inner.remove_suffix(1);
        if (without_begin && !inner.empty() && kSigns.find(inner.front()) != kSigns.npos)
          inner.remove_prefix(1);
        if (known.contains(inner)) return inner;
      }
  }
  return {};
}

// "functions.NAME:INDEX", which is also the id. Some answers lack the prefix or the index.
CallName KimiName(std::string_view id) {
  constexpr std::string_view kPrefix = "functions.";
  std::string_view name = id;
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  const size_t colon = name.rfind(':');
  if (colon != std::string_view::npos &&
      name.find_first_not_of(kDigits, colon + 1) == std::string_view::npos)
    name = name.substr(0, colon);
  return {std::string(id), std::string(name)};
}

}  // namespace

std::optional<CallName> ReadCallName(ToolFormat format, std::string_view text,
                                     const KnownFunctions* known) {
  text = Trimmed(text);
  CallName out;
  if (format == ToolFormat::kKimiK2) {
    out = KimiName(text);
  } else if (format == ToolFormat::kDeepseekV3) {
    constexpr std::string_view kType = "function<｜tool▁sep｜>";
    if (!text.starts_with(kType)) return std::nullopt;
    out.name = Trimmed(text.substr(kType.size()));
  } else {
    out.name = text;
  }
  if (!IsName(out.name)) return std::nullopt;
  if (known == nullptr || known->contains(out.name)) return out;
  const std::string_view found = KnownNameIn(out.id, *known);
  if (!found.empty()) out.name = found;
  return out;
}

}  // namespace latte
