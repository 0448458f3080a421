// Regular expressions over valid UTF-8. This is the only file that knows PCRE2. The work and memory
// of a match are limited, so a hostile pattern ends in an error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

struct RegexOptions {
  bool literal = false;  // the pattern is literal text
  bool jit = true;       // compiles to machine code where the platform allows it; the matches are
                         // the same
};

// A compiled pattern. Immutable, thread-safe; copies share the code.
class Regex {
 public:
  // Errors: kUnsupported with the reason and the offset in the pattern.
  [[nodiscard]] static Result<Regex> Compile(std::string_view pattern, RegexOptions options = {});

 private:
  friend class RegexMatcher;
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

// Processor time that one RegexMatcher may use. PCRE2's own limits count backtracking steps, not
// bytes read, so a pattern such as (?=a*b)a takes time quadratic in the text without reaching them.
// Real patterns need about a hundredth of this budget.
struct RegexBudget {
  double seconds = 5;
  double bytes_per_second = 128 * 1024;  // more seconds for longer text
};

// A match is the bytes [begin, end) of the subject.
struct RegexMatch {
  bool found = false;
  size_t begin = 0;
  size_t end = 0;
};

// Finds the matches of one Regex and holds the memory that matching needs. Thread-compatible.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex, RegexBudget budget = {});
  ~RegexMatcher();
  RegexMatcher(RegexMatcher&&) noexcept;
  RegexMatcher& operator=(RegexMatcher&&) = delete;

  // The first match that begins at `from` or later. Lookarounds and ^ $ see exactly `subject`. The
  // first search in each new subject must start at 0.
  // Requires: `subject` is valid UTF-8; `from` <= size, at the start of a code point.
  // Errors: kInvalidArgument if a limit is reached: 10 million backtracking steps or 64 MiB in one
  // search, or the budget of all searches together.
  [[nodiscard]] Result<RegexMatch> Find(std::string_view subject, size_t from);

 private:
  struct Memory;
  // One search that tries start places up to `last` only. Returns PCRE2's code.
  int Run(std::string_view subject, size_t from, size_t last);
  bool BudgetIsSpent();
  tl::unexpected<Error> GaveUp(std::string_view subject, size_t from, std::string_view why) const;

  Regex regex_;
  RegexBudget budget_;
  double allowed_seconds_;
  double used_seconds_ = 0;
  double cpu_at_start_;
  int64_t finds_ = 0;
  std::chrono::steady_clock::time_point looked_;  // the last time the clock was read
  std::unique_ptr<Memory> memory_;
};

}  // namespace latte
