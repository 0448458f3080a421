// Text of the template interpreter: UTF-8 bytes that keep their origin through every string
// operation. A byte was written by the template itself or by a user (a message). Knows nothing of
// templates. Also the few rules of Python's str that templates rely on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latte::jinja {

// Thread-compatible. Runs are in order, not empty, and neighbours differ in origin.
class Text {
 public:
  struct Run {
    size_t end = 0;  // one past the last byte; the next run begins here
    bool from_template = false;
  };

  Text() = default;
  Text(std::string bytes, bool from_template);

  const std::string& bytes() const { return bytes_; }
  const std::vector<Run>& runs() const { return runs_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  void Append(std::string_view bytes, bool from_template);
  void Append(const Text& other);
  void AppendRange(const Text& other, size_t begin, size_t end);  // byte offsets
  Text Slice(size_t begin, size_t end) const;                     // byte offsets, begin <= end

 private:
  std::string bytes_;
  std::vector<Run> runs_;
};

// Text of a user, with invalid UTF-8 replaced by U+FFFD.
Text UserText(std::string_view bytes);

int64_t CodePoints(std::string_view utf8);

// The offset of the code point after the one at `at`, of the one before `at`, and of the one with
// that index. Requires: at < size, at > 0, or index <= the number of code points.
size_t NextCodePoint(std::string_view utf8, size_t at);
size_t PreviousCodePoint(std::string_view utf8, size_t at);
size_t CodePointOffset(std::string_view utf8, int64_t index);

// The end of the part of at most about 64 KiB that begins at `begin`: work on a long text is paid
// for part by part.
size_t PartEnd(std::string_view utf8, size_t begin);

// The characters of Python's str.isspace: White_Space and four ASCII separators.
bool IsPythonSpace(char32_t code_point);

// Python's strip, lstrip and rstrip. `chars` is the set of characters to remove; by default, white
// space.
Text Strip(const Text& text, std::optional<std::string_view> chars, bool left, bool right);

size_t SpaceAt(std::string_view utf8, size_t offset);  // length in bytes of the space there, or 0

// Python's split and rsplit; max_split < 0 means no limit. Requires: `separator` is not empty.
std::vector<Text> Split(const Text& text, std::string_view separator, int64_t max_split);
std::vector<Text> SplitFromRight(const Text& text, std::string_view separator, int64_t max_split);
std::vector<Text> SplitAtSpaces(const Text& text, int64_t max_split);
std::vector<Text> SplitLines(const Text& text);

// Upper bounds for the number of parts that the functions above return.
size_t MostParts(std::string_view utf8);
size_t CountParts(std::string_view utf8, std::string_view separator);

// Python's replace, and how often it replaces; max_count < 0 means no limit.
// Requires: the caller has checked the size of the result.
Text Replace(const Text& text, std::string_view from, const Text& to, int64_t max_count);
size_t CountMatches(std::string_view utf8, std::string_view from, int64_t max_count);

}  // namespace latte::jinja
