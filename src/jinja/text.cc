#include "src/jinja/text.h"

#include <algorithm>

#include "src/text/unicode/unicode.h"

namespace latte::jinja {

Text::Text(std::string bytes, bool from_template) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), from_template});
}

void Text::Append(std::string_view bytes, bool from_template) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().from_template == from_template)
    runs_.back().end = bytes_.size();
  else
    runs_.push_back({bytes_.size(), from_template});
}

void Text::Append(const Text& other) { AppendRange(other, 0, other.size()); }

void Text::AppendRange(const Text& other, size_t begin, size_t end) {
  const auto after = [](size_t offset, const Run& run) { return offset < run.end; };
  auto run = std::upper_bound(other.runs_.begin(), other.runs_.end(), begin, after);
  while (begin < end) {
    const size_t stop = std::min(end, run->end);
    Append(std::string_view(other.bytes_).substr(begin, stop - begin), run->from_template);
    begin = stop;
    ++run;
  }
}

Text Text::Slice(size_t begin, size_t end) const {
  Text out;
  out.AppendRange(*this, begin, end);
  return out;
}

Text UserText(std::string_view bytes) {
  std::string valid;
  AppendValidUtf8(bytes, &valid);
  return Text(std::move(valid), false);
}

namespace {

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

int64_t CodePoints(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return !Continues(c); });
}

size_t NextCodePoint(std::string_view utf8, size_t at) {
  do ++at;
  while (at < utf8.size() && Continues(utf8[at]));
  return at;
}

size_t PreviousCodePoint(std::string_view utf8, size_t at) {
  do --at;
  while (at > 0 && Continues(utf8[at]));
  return at;
}

size_t CodePointOffset(std::string_view utf8, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < utf8.size(); --index) at = NextCodePoint(utf8, at);
  return at;
}

size_t PartEnd(std::string_view utf8, size_t begin) {
  constexpr size_t kPart = 64 * 1024;
  return utf8.size() - begin <= kPart ? utf8.size() : NextCodePoint(utf8, begin + kPart - 1);
}

bool IsPythonSpace(char32_t code_point) {
  return IsWhiteSpace(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

size_t SpaceAt(std::string_view utf8, size_t offset) {
  const Utf8Step step = DecodeUtf8(utf8.substr(offset));
  return step.valid && IsPythonSpace(step.code_point) ? static_cast<size_t>(step.bytes) : 0;
}

Text Strip(const Text& text, std::optional<std::string_view> chars, bool left, bool right) {
  const std::string_view bytes = text.bytes();
  const auto removable = [&](size_t begin, size_t end) {
    if (!chars) return SpaceAt(bytes, begin) > 0;
    // The search is for a whole code point: valid UTF-8 cannot match in the middle of another one.
    return chars->find(bytes.substr(begin, end - begin)) != std::string_view::npos;
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (left && begin < end) {
    const size_t next = NextCodePoint(bytes, begin);
    if (!removable(begin, next)) break;
    begin = next;
  }
  while (right && begin < end) {
    const size_t last = PreviousCodePoint(bytes, end);
    if (!removable(last, end)) break;
    end = last;
  }
  return text.Slice(begin, end);
}

std::vector<Text> Split(const Text& text, std::string_view separator, int64_t max_split) {
  std::vector<Text> out;
  size_t begin = 0;
  for (; max_split != 0; --max_split) {
    const size_t at = text.bytes().find(separator, begin);
    if (at == std::string::npos) break;
    out.push_back(text.Slice(begin, at));
    begin = at + separator.size();
  }
  out.push_back(text.Slice(begin, text.size()));
  return out;
}

std::vector<Text> SplitFromRight(const Text& text, std::string_view separator, int64_t max_split) {
  std::vector<Text> out;
  size_t end = text.size();
  for (; max_split != 0; --max_split) {
    const size_t at = std::string_view(text.bytes()).substr(0, end).rfind(separator);
    if (at == std::string_view::npos) break;
    out.push_back(text.Slice(at + separator.size(), end));
    end = at;
  }
  out.push_back(text.Slice(0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Text> SplitAtSpaces(const Text& text, int64_t max_split) {
  std::vector<Text> out;
  const std::string_view bytes = text.bytes();
  size_t at = 0;
  while (true) {
    for (size_t n = 0; at < bytes.size() && (n = SpaceAt(bytes, at)) > 0;) at += n;
    if (at >= bytes.size()) return out;
    const size_t begin = at;
    if (max_split-- == 0) {
      out.push_back(text.Slice(begin, bytes.size()));
      return out;
    }
    while (at < bytes.size() && SpaceAt(bytes, at) == 0) ++at;
    out.push_back(text.Slice(begin, at));
  }
}

std::vector<Text> SplitLines(const Text& text) {
  std::vector<Text> out;
  const std::string_view bytes = text.bytes();
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Step step = DecodeUtf8(bytes.substr(at));
    const char32_t c = step.code_point;
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    size_t next = at + static_cast<size_t>(step.bytes);
    if (ends) {
      out.push_back(text.Slice(begin, at));
      if (c == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) out.push_back(text.Slice(begin, bytes.size()));
  return out;
}

namespace {

// Calls f(begin, end) for each match that replace() replaces. An empty `from` matches around every
// code point, as in Python.
template <class F>
void ForEachMatch(std::string_view bytes, std::string_view from, int64_t max_count, F f) {
  size_t at = 0;
  for (; max_count != 0; --max_count) {
    at = from.empty() ? at : bytes.find(from, at);
    if (at == std::string_view::npos || at > bytes.size()) return;
    f(at, at + from.size());
    at += from.size();
    if (from.empty()) at = NextCodePoint(bytes, at);
  }
}

}  // namespace

size_t MostParts(std::string_view utf8) {
  // Every space and every end of line begins with one of these bytes.
  return 1 + static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte == 0xC2 || (byte >= 0xE1 && byte <= 0xE3);
         }));
}

size_t CountParts(std::string_view utf8, std::string_view separator) {
  return 1 + CountMatches(utf8, separator, -1);
}

size_t CountMatches(std::string_view utf8, std::string_view from, int64_t max_count) {
  size_t matches = 0;
  ForEachMatch(utf8, from, max_count, [&](size_t, size_t) { ++matches; });
  return matches;
}

Text Replace(const Text& text, std::string_view from, const Text& to, int64_t max_count) {
  Text out;
  size_t done = 0;
  ForEachMatch(text.bytes(), from, max_count, [&](size_t begin, size_t end) {
    out.AppendRange(text, done, begin);
    out.Append(to);
    done = end;
  });
  out.AppendRange(text, done, text.size());
  return out;
}

}  // namespace latte::jinja
