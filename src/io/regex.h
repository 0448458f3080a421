// Regular expressions over valid UTF-8, behind one small door: the only file that knows PCRE2. Work
// and memory of a match are limited, so that a hostile pattern ends in an error.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

struct RegexOptions {
  bool literal = false;  // the pattern is text to be found, not an expression
  bool jit = true;       // machine code where the platform allows it; the matches are the same
};

// A compiled pattern. Immutable, thread-safe; copies share the code.
class Regex {
 public:
  // Errors: kUnsupported with the reason and the place in the pattern.
  [[nodiscard]] static Result<Regex> Compile(std::string_view pattern, RegexOptions options = {});

 private:
  friend class RegexMatcher;
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

// A match is the bytes [begin, end) of the subject.
struct RegexMatch {
  bool found = false;
  size_t begin = 0;
  size_t end = 0;
};

// Finds the matches of one Regex; holds the memory that matching needs. Thread-compatible.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);
  ~RegexMatcher();
  RegexMatcher(RegexMatcher&&) noexcept;
  RegexMatcher& operator=(RegexMatcher&&) = delete;

  // The first match that begins at `from` or later. Lookarounds and ^ $ see exactly `subject`.
  // Requires: `subject` is valid UTF-8; `from` <= size, at the beginning of a code point.
  // Errors: kInvalidArgument when a limit is hit.
  [[nodiscard]] Result<RegexMatch> Find(std::string_view subject, size_t from);

 private:
  struct Memory;
  Regex regex_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace latte
