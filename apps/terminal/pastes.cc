#include "apps/terminal/pastes.h"

#include <algorithm>

#include <fmt/format.h>

namespace latte {
namespace {

std::string WithLineEnds(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '\n')
      out += Pastes::kLineEnd;
    else
      out += c;
  return out;
}

}  // namespace

std::string Pastes::Insert(std::string_view text) {
  const auto newlines = std::count(text.begin(), text.end(), '\n');
  const bool is_short = text.size() <= kInline && text.find(kLineEnd) == std::string_view::npos;
  if (newlines == 0 && is_short) return std::string(text);
  for (const Paste& paste : kept_)
    if (paste.text == text) return paste.mark;
  if (is_short) {
    kept_.push_back({WithLineEnds(text), std::string(text)});
    return kept_.back().mark;
  }
  const auto lines = newlines + (text.ends_with('\n') ? 0 : 1);
  kept_.push_back({fmt::format("[paste {}: {} {}, {} bytes]", kept_.size() + 1, lines,
                               lines == 1 ? "line" : "lines", text.size()),
                   std::string(text)});
  return kept_.back().mark;
}

std::string Pastes::Expand(std::string_view line) const {
  std::string out;
  while (!line.empty()) {
    const auto begins = [&](const Paste& paste) { return line.starts_with(paste.mark); };
    const auto found = std::find_if(kept_.begin(), kept_.end(), begins);
    const bool ends_line = line.starts_with(kLineEnd);
    if (found != kept_.end()) {
      out += found->text;
      line.remove_prefix(found->mark.size());
    } else {
      out += ends_line ? '\n' : line.front();
      line.remove_prefix(ends_line ? kLineEnd.size() : 1);
    }
  }
  return out;
}

bool Pastes::BeginsWithLines(std::string_view line) const {
  return std::any_of(kept_.begin(), kept_.end(), [&](const Paste& paste) {
    return line.starts_with(paste.mark) && paste.text.find('\n') != std::string::npos;
  });
}

std::string PastedText(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    char c = bytes[i];
    if (c == '\r') {
      if (i + 1 < bytes.size() && bytes[i + 1] == '\n') continue;
      c = '\n';
    }
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t') out += c;
  }
  return out;
}

}  // namespace latte
